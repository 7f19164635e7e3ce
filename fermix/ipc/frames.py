"""The frame of the control socket: a length and that many bytes of JSON.

A frame is an unsigned 32-bit big-endian length, then the payload. Every request carries the
protocol version; the daemon serves OLDEST_VERSION to VERSION.
"""

from __future__ import annotations

from fermix.errors import ProtocolError

VERSION = 1
OLDEST_VERSION = 1
FRAME_LIMIT_BYTES = 4 * 1024 * 1024
"""Most bytes of payload in one frame, unless the owner's settings say otherwise."""
BLOB_CHUNK_BYTES = 1024 * 1024
"""Most bytes of a file in one `blob` request, before base64."""

_LENGTH_BYTES = 4


def encode(payload: bytes, *, limit_bytes: int = FRAME_LIMIT_BYTES) -> bytes:
    """The frame that carries `payload`.

    Raises: ProtocolError (`frame_empty`, `frame_too_large`).
    """
    _check_length(len(payload), limit_bytes)
    return len(payload).to_bytes(_LENGTH_BYTES) + payload


class FrameReader:
    """Cuts a byte stream into payloads; holds at most one frame that is not whole yet."""

    def __init__(self, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._buffer = bytearray()

    @property
    def is_inside_frame(self) -> bool:
        """Whether a frame has begun and is not whole: an end of the stream now loses it."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that `data` completes, oldest first.

        Contract: after it raised, the stream has no known position; close the connection.
        Raises: ProtocolError (`frame_empty`, `frame_too_large`) as soon as the length is known.
        """
        self._buffer += data
        payloads: list[bytes] = []
        start = 0
        while len(self._buffer) - start >= _LENGTH_BYTES:
            length = int.from_bytes(self._buffer[start : start + _LENGTH_BYTES])
            _check_length(length, self._limit_bytes)
            end = start + _LENGTH_BYTES + length
            if len(self._buffer) < end:
                break
            payloads.append(bytes(self._buffer[start + _LENGTH_BYTES : end]))
            start = end
        del self._buffer[:start]
        return payloads


def _check_length(length: int, limit_bytes: int) -> None:
    if length == 0:
        raise ProtocolError("A frame of 0 bytes; expected a JSON object.", code="frame_empty")
    if length > limit_bytes:
        raise ProtocolError(
            f"A frame of {length} bytes; at most {limit_bytes} are taken.", code="frame_too_large"
        )
