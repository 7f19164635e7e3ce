"""A message on its way to the daemon: its text, its files, where it was written."""

from __future__ import annotations

import base64
import contextlib
import mimetypes
import os
import time
from pathlib import Path
from typing import Any, BinaryIO

from fermix.cli.waiting import Waiting
from fermix.errors import FermixError, OwnerError, UsageError
from fermix.ids import new_id
from fermix.ipc.client import Connection
from fermix.ipc.frames import BLOB_CHUNK_BYTES

STDIN_LIMIT_BYTES = 512 * 1024
"""More than any model reads; a bigger file goes with --attach."""

_CHUNK_TIMEOUT_S = 30.0


def joined_text(words: tuple[str, ...], piped: str | None) -> str:
    """The words of the command line, then what was piped in, below a blank line."""
    typed = _readable(" ".join(words)).strip()
    parts = [part for part in (typed, (piped or "").strip("\n")) if part.strip()]
    return "\n\n".join(parts)


def read_piped(stream: BinaryIO) -> str:
    """All of standard input as text.

    Raises: UsageError when it is larger than STDIN_LIMIT_BYTES.
    """
    data = stream.read(STDIN_LIMIT_BYTES + 1)
    if len(data) > STDIN_LIMIT_BYTES:
        raise UsageError(
            f"Standard input is larger than {STDIN_LIMIT_BYTES // 1024} KiB.",
            hint="save it to a file and send that with --attach FILE",
        )
    return data.decode("utf-8", "replace")


def message(
    text: str,
    session: str | None,
    attachments: list[dict[str, str]],
    *,
    model: str | None = None,
    effort: str | None = None,
) -> dict[str, Any]:
    """The params of `message`; its client id makes sending it again harmless."""
    params: dict[str, Any] = {"text": text, "client_id": new_id(time.time_ns() // 1_000_000)}
    if session is not None:
        params["session"] = _readable(session)
    if model is not None:
        params["model"] = _readable(model)
    if effort is not None:
        params["effort"] = _readable(effort)
    if attachments:
        params["attachments"] = attachments
    with contextlib.suppress(FileNotFoundError):  # the folder may be deleted under us
        params["cwd"] = _readable(str(Path.cwd()))
    return params


def upload(connection: Connection, path: Path, *, is_silent: bool) -> dict[str, str]:
    """Send a file in chunks; what `message` calls it.

    Raises: OwnerError when it cannot be read, and what the daemon refuses.
    """
    try:
        with path.open("rb") as file, Waiting(f"sending {path.name}", is_silent=is_silent) as waiting:
            size = os.fstat(file.fileno()).st_size
            blob_id: str | None = None
            sent = 0
            while True:
                chunk = file.read(BLOB_CHUNK_BYTES)
                params = {"blob_id": blob_id, "data": base64.b64encode(chunk).decode()}
                answer = _sent(connection, params, path)
                blob_id = str(answer.get("blob_id") or "")
                sent += len(chunk)
                waiting.what = f"sending {path.name} {100 * sent // size if size else 100} %"
                waiting.tick()
                if len(chunk) < BLOB_CHUNK_BYTES:
                    break
    except OSError as exc:
        raise OwnerError(f"The file '{path}' cannot be read: {exc.strerror}.") from exc
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return {"blob_id": blob_id, "name": _readable(path.name), "media_type": media_type}


def _sent(connection: Connection, params: dict[str, Any], path: Path) -> dict[str, Any]:
    """Raises: what the daemon refuses, with the file's name."""
    try:
        return connection.call("blob", params, _CHUNK_TIMEOUT_S)
    except FermixError as exc:
        if exc.code != UsageError.code:
            raise
        raise UsageError(f"'{path}' cannot be attached: {exc.message}", hint=exc.hint) from exc


def _readable(text: str) -> str:
    """Bytes of a command line that are no UTF-8 arrive as halves of characters; send what can be sent."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
