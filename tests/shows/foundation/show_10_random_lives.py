"""30 random lives of a daemon: kills in exact states, while it drains and while it recovers, and cancels.

python show_10_random_lives.py [--lives 30] [--seed 0]
"""

from __future__ import annotations

import argparse
import sys

from tests.sequences import live


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    messages = 0
    for seed in range(chosen.seed, chosen.seed + chosen.lives):
        messages += (sent := live(seed))
        print(f"life {seed}: {sent} messages", flush=True)
    print(f"{chosen.lives} random lives, {messages} messages: each ended once, no tool call ran twice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
