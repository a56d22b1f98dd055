"""The service under a steady load for long: see `__main__`."""
