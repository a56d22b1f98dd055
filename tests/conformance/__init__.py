"""Plays scenario files against the service, through Kafka or without it: see tests/README.md."""
