"""The demo: generated streams, standing queries, and a live view of their events."""
