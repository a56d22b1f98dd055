"""What one tenant does to the others: see `__main__`."""
