"""Random faults under load, and the definition at the end: see `__main__`."""
