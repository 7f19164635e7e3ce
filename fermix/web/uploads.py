"""`POST /uploads`: a file, or the next piece of one, to be named in a message."""

from __future__ import annotations

import msgspec

from fermix.web.routes import Call, Route
from fermix.web.schema import Id

PIECE_BYTES = 1024 * 1024


class Uploaded(msgspec.Struct):
    """What to name in `attachments`."""

    blob_id: str
    size_bytes: int
    """How much of it is here so far."""


class UploadQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Parameters of an upload."""

    blob_id: Id | None = None
    """An earlier upload to go on with; None begins a new one."""


def _upload(call: Call) -> object:
    blob_id: str | None = call.query.blob_id
    size: int | None = None
    for piece in call.raw.pieces(PIECE_BYTES):
        blob_id, size = call.desk().upload(blob_id, piece)
    if blob_id is None or size is None:
        blob_id, size = call.desk().upload(blob_id, b"")
    return Uploaded(blob_id, size)


ROUTES = (
    Route(
        method="POST",
        path="/uploads",
        summary="Upload a file, or with blob_id its next piece; the body is the file itself.",
        answer=_upload,
        query=UploadQuery,
        takes_bytes=True,
        response=Uploaded,
        errors=(400, 404, 408, 411, 413, 503),
        tag="messages",
        body_limit=lambda settings: settings.upload_limit_bytes,
    ),
)
