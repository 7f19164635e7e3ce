"""The person of `fermix setup`, asked in plain lines on stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from fermix.cli.asking import ask_hidden, ask_line
from fermix.cli.terminal import escaped, paint


class Screen:
    """Fills `fermix.setup.wizard.port.Asker`."""

    def choose(self, question: str, options: Sequence[str], *, default: int) -> int:
        """The index of the chosen option; asked again until it is one."""
        lines = [f"  {number}  {option}" for number, option in enumerate(options, start=1)]
        sys.stderr.write("\n".join([paint(question, "bold", sys.stderr), *lines, ""]))
        while True:
            answer = ask_line("Number", str(default + 1))
            if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(options):
                return int(answer) - 1
            self.tell(f"Please type a number from 1 to {len(options)}.")

    def line(self, question: str, default: str = "") -> str:
        """What was typed, `default` for nothing."""
        return ask_line(question, default)

    def hidden(self, question: str) -> str:
        """What was typed unseen."""
        return ask_hidden(question)

    def tell(self, text: str) -> None:
        """Lines in between; what a provider said cannot steer the terminal."""
        sys.stderr.write(f"{escaped(text)}\n")
        sys.stderr.flush()
