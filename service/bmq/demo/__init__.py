"""The demo: generated streams, standing queries, and a live view of the events that they make."""
