"""The way of a message: accepted, queued, answered, delivered, committed."""
