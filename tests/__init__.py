"""The gate and everything it runs; `python3 -m tests` is the one command."""
