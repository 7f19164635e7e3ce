"""Writes a session out page by page, to the terminal or whole into a file."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fermix.cli.terminal import escaped, is_terminal, one_line
from fermix.cli.waiting import Waiting, patiently
from fermix.errors import OwnerError
from fermix.ipc.client import Connection

Write = Callable[[str], object]


def export_session(connection: Connection, name: str, *, kind: str, out: str, is_silent: bool) -> int:
    """How many messages were written to `out`; "-" is stdout.

    A file is there whole and 0600, or not at all.
    Raises: OwnerError when the session is unknown, changes under our hands, or the file cannot be written.
    """
    pages = _pages(connection, name, kind, is_silent=is_silent)
    first = next(pages)  # an unknown session leaves no file behind
    with _opened(out) as write:
        return (_write_json if kind == "json" else _write_markdown)(first, pages, write)


def _pages(connection: Connection, name: str, kind: str, *, is_silent: bool) -> Iterator[dict[str, Any]]:
    position, conversation_id, count = 0, None, 0
    with Waiting(f"exporting {one_line(name, 40)}", is_silent=is_silent) as waiting:
        while True:
            asked = {"session": name, "after_position": position, "limit": 1000, "format": kind}
            page = patiently(connection, "sessions.export", asked, waiting=waiting)
            if conversation_id not in (None, page["conversation_id"]):
                raise OwnerError(
                    f"The session {name!r} was deleted and begun again meanwhile; nothing was written.",
                    hint=f"fermix sessions export {name}",
                )
            yield page
            conversation_id, following = page["conversation_id"], page.get("next_position")
            if following is None:
                return
            position, count = int(following), int(page.get("message_count") or 0)
            waiting.what = f"exporting {one_line(name, 40)}: {position:,} of {count:,} messages"
            waiting.tick()


def _write_json(first: dict[str, Any], pages: Iterator[dict[str, Any]], write: Write) -> int:
    """One object; each message on a line of its own."""
    head = json.dumps(first["head"], ensure_ascii=False)
    write(f'{head[:-1]}, "messages": [')
    count = 0
    for page in _chained(first, pages):
        for message in page["messages"]:
            write(("," if count else "") + "\n" + json.dumps(message, ensure_ascii=False))
            count += 1
    write("\n]}\n")
    return count


def _write_markdown(first: dict[str, Any], pages: Iterator[dict[str, Any]], write: Write) -> int:
    write(str(first["head"]))
    for page in _chained(first, pages):
        write(str(page["text"]))
    return int(first.get("message_count") or 0)


def _chained(first: dict[str, Any], pages: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield first
    yield from pages


@contextlib.contextmanager
def _opened(out: str) -> Iterator[Write]:
    if out == "-":
        is_shown = is_terminal(sys.stdout)
        yield lambda text: sys.stdout.write(escaped(text) if is_shown else text)
        sys.stdout.flush()
        return
    path = Path(out).absolute()
    half = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            yield file.write
            file.flush()
            os.fsync(descriptor)
        half.replace(path)
    except OSError as exc:
        raise OwnerError(f"Cannot write '{path}': {exc.strerror or exc}. Nothing was left there.") from exc
    finally:
        half.unlink(missing_ok=True)
