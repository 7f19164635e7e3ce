"""An Ollama on this machine: whether it is there, and which of its models can use tools.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md (GET /api/tags, POST /api/show
with `capabilities`; a model that really runs elsewhere has `remote_host`).
"""

from __future__ import annotations

import logging

import msgspec

from fermix.errors import FermixError
from fermix.net.door import OwnerDoor
from fermix.providers.learned import Learned
from fermix.providers.model_lists import read_shown
from fermix.tasks import Cancel, Deadline

log = logging.getLogger(__name__)

_LOOK_S = 2.0
_MODELS_LOOKED_AT = 16
_LIMIT_BYTES = 4 * 1024 * 1024


class _Model(msgspec.Struct):
    name: str = ""
    remote_host: str | None = None


class _Tags(msgspec.Struct):
    models: list[_Model] | None = None


def find_model(url: str, *, wanted: str | None) -> tuple[str, Learned] | None:
    """A model of the Ollama at `url` that takes tools: `wanted`, else the newest; None when none.

    Takes at most 2 s, a fraction of a millisecond when nothing listens there. Models that run
    on someone else's machine are left out.
    """
    door = OwnerDoor(url, connect_timeout_s=0.5, kept_connections=1)
    if not door.is_listening(timeout_s=0.3):
        return None
    deadline = Deadline.after(_LOOK_S)
    try:
        tags = msgspec.json.decode(_asked(door, "/api/tags", None, deadline), type=_Tags)
        names = [model.name for model in tags.models or () if model.name and not model.remote_host]
        if wanted is not None:
            names = [name for name in names if wanted in (name, name.removesuffix(":latest"))]
        for name in names[:_MODELS_LOOKED_AT]:
            body = msgspec.json.encode({"model": name})
            shown = read_shown(_asked(door, "/api/show", body, deadline))
            if shown is not None and shown.takes_tools:
                return name, shown
    except (FermixError, msgspec.DecodeError, RecursionError) as error:
        log.info("What listens at %s does not answer as an Ollama: %s", door.address.origin, error)
    finally:
        door.close()
    return None


def _asked(door: OwnerDoor, path: str, body: bytes | None, deadline: Deadline) -> bytes:
    """The body of a 200; anything else is empty JSON."""
    headers = {"Content-Type": "application/json"}
    response = door.send(
        "GET" if body is None else "POST",
        path,
        body,
        headers=headers,
        cancel=Cancel(),
        deadline=deadline,
        idle_timeout_s=_LOOK_S,
        limit_bytes=_LIMIT_BYTES,
    )
    with response:
        answer = response.read_all()
        return answer if response.status == 200 else b"{}"
