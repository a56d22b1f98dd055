"""One module for each figure of the papers, and for each claim of ours that goes beyond them."""
