"""Picks client or daemon before anything heavy is imported."""

from __future__ import annotations

import sys


def main() -> int:
    """The exit status of `fermix <verb>`."""
    sys.stderr.write("fermix: no verbs yet\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
