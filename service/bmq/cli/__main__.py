"""Runs the command line as `python -m bmq.cli`."""

from bmq.cli import main

main()
