"""Shows of the foundation: from a fresh clone to an answered message, and what survives meanwhile."""
