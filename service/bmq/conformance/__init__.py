"""Scenarios as a product: a file of rules, played against any system through a small adapter."""
