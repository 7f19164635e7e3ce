"""The same figures for fermix and another agent, side by side: `python3 -m tests.bench --peer [--write]`.

Both answer from the scripted model server of `fermix.testing`, on loopback, in a network namespace that
has nothing else. fermix is the frozen binary; nanobot-ai comes from PyPI, pinned by hash, in an
environment of its own below `.cache/`. `--write` keeps the figures in `peer.json` and in the README.
"""
