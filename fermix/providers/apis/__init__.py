"""Wire APIs: one file (or a few) per protocol, pure; bytes in, events out."""
