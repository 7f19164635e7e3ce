"""Shows: scripts that prove what a person was promised, run by hand with `python3 -m tests.shows AREA`.

A show is `tests/shows/AREA/show_NN_what.py`, run as a module of its own: exit status 0 when the promise
holds, its figure printed last. It may take minutes and need root; it cleans up after itself.
"""
