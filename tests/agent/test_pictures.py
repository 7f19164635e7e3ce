"""Pictures for a request: told by their bytes, bounded, and missing where they cannot be shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fermix.agent.events import Notice, TurnEnded
from fermix.agent.loop import Agent
from fermix.agent.pictures import MOST, SIZE_LIMIT_BYTES, Album, chosen, find, kind_of, read
from fermix.agent.settings import AgentSettings
from fermix.agent.thinking import Thinking
from fermix.capabilities.registry import Registry
from fermix.messages import AssistantMessage, Image, UserMessage
from fermix.providers.port import Failed, FailureKind, ModelLimits
from tests.fakes import FakeModel, tool_context, turn_facts

PNG = b"\x89PNG\r\n\x1a\n" + b"rest"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a..", "image/gif"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"RIFF\x10\x00\x00\x00WAVEfmt ", None),
        (b"<svg>", None),
        (b"fx_token", None),
        (b"", None),
    ],
)
def test_picture_is_told_by_its_first_bytes(head: bytes, kind: str | None) -> None:
    assert kind_of(head) == kind


def test_files_that_can_be_shown_are_found_whatever_they_are_called(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(PNG)
    (tmp_path / "b.png").write_bytes(b"no picture")
    (tmp_path / "c.png").write_bytes(PNG + b"x" * SIZE_LIMIT_BYTES)
    paths = [str(tmp_path / name) for name in ("a.txt", "b.png", "c.png", "gone.png")]

    assert find(paths) == (Image(paths[0], "image/png"),)


def test_what_is_not_the_picture_that_came_is_left_out(tmp_path: Path) -> None:
    secret = tmp_path / "api-token"
    secret.write_bytes(PNG)
    names = ("whole", "changed", "link", "pipe", "grown", "gone")
    images = [Image(str(tmp_path / name), "image/png") for name in names]
    (tmp_path / "whole").write_bytes(PNG)
    (tmp_path / "changed").write_bytes(b"GIF89a")
    (tmp_path / "link").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "grown").write_bytes(PNG + b"x" * SIZE_LIMIT_BYTES)

    assert read(images) == {images[0].path: PNG}


def test_latest_pictures_are_chosen() -> None:
    messages = [
        UserMessage("a", images=tuple(Image(f"a{number}", "image/png") for number in range(MOST))),
        AssistantMessage("seen"),
        UserMessage("b", images=(Image("b0", "image/png"), Image("b1", "image/png"))),
        UserMessage("c"),
    ]

    assert [image.path for image in chosen(messages)] == ["b1", "b0", *(f"a{n}" for n in range(9, 1, -1))]
    assert chosen(messages[1:2]) == []


ASKED = UserMessage("what is it?", images=(Image("/p.png", "image/png"),))
REFUSED = Failed(FailureKind.IMAGE_UNSUPPORTED, "too wide", retryable=False)


def ask(model: FakeModel, album: Album) -> tuple[list[str], TurnEnded]:
    """What a person is told of a turn about a picture, and its end."""
    agent = Agent(model, Registry(()), invoke=lambda *_: None, settings=AgentSettings(), album=album)
    thinking = Thinking(tool_context(turn_facts(Path("/"))), [ASKED])
    events = list(agent.run(thinking))
    assert isinstance(events[-1], TurnEnded)
    return [event.text for event in events if isinstance(event, Notice)], events[-1]


def whole_album() -> Album:
    return Album(lambda images: {image.path: PNG for image in images})


def test_model_that_sees_is_shown_the_picture() -> None:
    model = FakeModel("a cat", limits=ModelLimits(sees_images=True))

    notices, ended = ask(model, whole_album())

    assert (notices, ended.text) == ([], "a cat")
    assert model.requests[0].images == {"/p.png": PNG}


def test_model_that_does_not_see_is_told_names_and_the_person_too() -> None:
    model = FakeModel("no idea")

    notices, _ = ask(model, whole_album())

    assert notices == ["fake-1 does not see pictures; it is told their names."]
    assert model.requests[0].images == {}


def test_refused_picture_ends_neither_this_turn_nor_the_next() -> None:
    model, album = FakeModel(REFUSED, "a file", limits=ModelLimits(sees_images=True)), whole_album()

    notices, ended = ask(model, album)
    later, _ = ask(model, album)

    assert notices == ["The pictures were refused; the model is told their names instead."]
    assert later == []
    assert ended.text == "a file"
    assert [dict(request.images) for request in model.requests] == [{"/p.png": PNG}, {}, {}]


def test_refusal_without_any_picture_is_told_and_not_asked_again() -> None:
    model = FakeModel(REFUSED, limits=ModelLimits(sees_images=True))

    _, ended = ask(model, Album(lambda images: {}))

    assert ended.error_code == "image_unsupported"
    assert len(model.requests) == 1
