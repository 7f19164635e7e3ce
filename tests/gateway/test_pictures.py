"""Pictures that come with a message: kept with it, shown with every later request."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fermix.messages import Attachment, Image, UserMessage
from tests.fakes import inbound

PNG = b"\x89PNG\r\n\x1a\nrest"


def test_picture_is_stored_with_the_message_and_its_name_stays_in_the_words(
    open_office, tmp_path: Path
) -> None:
    picture, text = tmp_path / "cat", tmp_path / "notes.png"
    picture.write_bytes(PNG)
    text.write_bytes(b"no picture")
    office = open_office()
    files = tuple(
        Attachment(str(path), path.name, "image/png", path.stat().st_size) for path in (picture, text)
    )

    office.done(office.gateway.submit(msgspec.structs.replace(inbound("look"), attachments=files)))

    asked = office.messages()[0]
    assert isinstance(asked, UserMessage)
    assert asked.images == (Image(str(picture), "image/png"),)
    assert asked.text.startswith("look\n[attached: cat (image/png")
    assert "notes.png" in asked.text
