"""`fermix prompt-size`: what every request to a model begins with, by parts."""

from __future__ import annotations

import click

from fermix.cli.door import Door
from fermix.cli.options import examples, json_option, own_home, print_json
from fermix.cli.terminal import one_line, say

_TIMEOUT_S = 30.0
_NAME_WIDTH = 48


@click.command("prompt-size", epilog=examples("fermix prompt-size", "fermix prompt-size --json"))
@click.argument("text", metavar="[TEXT]", default="ping", required=False)
@json_option
def command(text: str, as_json: bool) -> None:
    """Show what the bytes of a request are.

    The instructions and tools that stand in front of every conversation, and TEXT (ping) as its first
    message, as the chat-completions protocol sends them. Tokens are estimated.
    """
    with Door(own_home(), starts_private=True, is_silent=as_json).open() as connection:
        answer = connection.call("prompt.size", {"text": text}, _TIMEOUT_S)
    if as_json:
        print_json(answer)
        return
    rows = [("", "bytes", "~tokens")]
    for part in answer.get("parts") or []:
        name = one_line(f"{part['kind']} {part['name']}".strip(), _NAME_WIDTH)
        rows.append((name, f"{part['bytes']:,}", f"{part['tokens']:,}"))
    rows.append(("total", f"{answer['total_bytes']:,}", f"{answer['total_tokens']:,}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row_name, size, tokens in rows:
        print(f"{row_name:<{widths[0]}}  {size:>{widths[1]}}  {tokens:>{widths[2]}}")
    for problem in answer.get("problems") or []:
        say(str(problem))
