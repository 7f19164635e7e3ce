"""The methods about sessions: title, archive, export, delete."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fermix.errors import FermixError, SessionUnknown, ToolDenied, UsageError
from fermix.ids import new_id
from fermix.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from fermix.trust import GUEST_ATTENDED, OPERATOR_ATTENDED
from tests.daemon.client import Client, fresh
from tests.fakes import call
from tests.gateway.office import until


@pytest.fixture
def open_desk(tmp_path: Path) -> Iterator[Callable[..., Client]]:
    desks: list[Client] = []

    def open_one(*script: object) -> Client:
        for desk in desks:
            desk.office.crash()
        desks.append(Client(tmp_path, *script))
        return desks[-1]

    yield open_one
    for desk in desks:
        desk.close()


def names(desk: Client, **params: object) -> list[str]:
    return [one["session"] for one in desk.ask("sessions.list", **params)["sessions"]]


def test_title_is_one_line_and_stays_when_more_is_said(open_desk) -> None:
    desk = open_desk("hi")
    desk.say("first words")

    assert desk.ask("sessions.title", session="main", title=" The\n plan ")["title"] == "The plan"
    desk.say("more")
    assert desk.ask("sessions.get", session="main")["title"] == "The plan"


@pytest.mark.parametrize("title", ["x" * 201, "\x1b[31m"])
def test_title_that_is_none_is_refused(open_desk, title: str) -> None:
    desk = open_desk("hi")
    desk.say()
    with pytest.raises(UsageError, match="is no title"):
        desk.ask("sessions.title", session="main", title=title)


def test_archived_session_is_out_of_the_list_until_it_is_taken_back(open_desk) -> None:
    desk = open_desk("hi")
    for session in ("a", "b"):
        desk.say(session=session)

    assert desk.ask("sessions.archive", session="a")["archived_ms"] is not None
    assert (names(desk), names(desk, is_archived=True)) == (["b"], ["a"])
    assert desk.ask("sessions.archive", session="a", is_archived=False)["archived_ms"] is None
    assert names(desk, is_archived=True) == []


def test_words_take_an_archived_session_back(open_desk) -> None:
    desk = open_desk("hi")
    desk.say()
    desk.ask("sessions.archive", session="main")

    desk.say("still there?")

    assert names(desk) == ["main"]


@pytest.mark.parametrize("method", ["get", "title", "archive", "export", "delete"])
def test_unknown_session_is_answered_with_the_nearest(open_desk, method: str) -> None:
    desk = open_desk("hi")
    desk.say(session="garden")
    desk.ask("sessions.archive", session="garden")
    params = {"title": "x"} if method == "title" else {}

    with pytest.raises(SessionUnknown, match=r"No session named 'gardn'\. Did you mean 'garden'"):
        desk.ask(f"sessions.{method}", session="gardn", **params)


def test_export_has_everything_in_order(open_desk) -> None:
    desk = open_desk(call("act", word="```x"), "It is done.")
    turn_id = desk.say("please")["turn_id"]

    page = desk.ask("sessions.export", session="main")

    assert page["head"]["session"] == "main"
    assert (page["message_count"], page["next_position"]) == (4, None)
    user, asked, result, final = page["messages"]
    assert (user["role"], user["text"], user["turn_id"]) == ("user", "please", turn_id)
    assert asked["tool_calls"] == [{"id": "c1", "name": "act", "arguments": {"word": "```x"}}]
    assert (result["role"], result["text"], result["is_error"]) == ("tool", "did ```x", False)
    assert final["text"] == "It is done."


def test_markdown_export_cannot_be_broken_out_of(open_desk) -> None:
    desk = open_desk(call("act", word="\n```\n# fake"), "done")
    desk.say("please")

    page = desk.ask("sessions.export", session="main", format="markdown")

    assert page["head"].startswith("# please\n")
    assert "````\ndid \n```\n# fake\n````" in page["text"]


def test_pages_of_a_big_session_are_bounded_and_miss_nothing(open_desk) -> None:
    desk = open_desk("hi")
    desk.say()
    store, db = desk.office.conversations, desk.office.db
    conversation_id = store.find(desk.office.inbox.unfinished()[0].key).id
    huge = "\x00" * 300_000
    said = [UserMessage("é" * 100_000), AssistantMessage(huge, (ToolCall("1", "t", {"x": huge}),), huge)]
    db.write(lambda c: store.append(c, conversation_id, "T", [*said, ToolMessage("1", "t", huge)] * 8))

    seen, position = [], 0
    while position is not None:
        page = desk.ask("sessions.export", session="main", after_position=position, limit=1000)
        assert len(json.dumps(page, ensure_ascii=False)) < 6 * 1024 * 1024
        seen += [message["position"] for message in page["messages"]]
        position = page["next_position"]
    assert seen == list(range(1, 27))


def test_deletion_takes_the_files_of_the_session_along(open_desk) -> None:
    desk = open_desk("hi")
    gone, kept = desk.upload(b"secret"), desk.upload(b"public")
    desk.say("look", attachments=[{"blob_id": gone, "name": "a.txt"}])
    desk.say("look", session="b", attachments=[{"blob_id": kept, "name": "b.txt"}])

    assert desk.ask("sessions.delete", session="main") == {"session": "main", "messages": 2, "files": 1}

    folder = desk.home.workspace / "attachments"
    assert [path.name for path in folder.iterdir()] == [kept]
    assert list(desk.home.removals.iterdir()) == []
    assert names(desk) == ["b"]


def test_deletion_leaves_a_file_that_was_sent_in_another_session_too(open_desk) -> None:
    desk = open_desk("hi")
    sent = {"blob_id": desk.upload(b"plan"), "name": "a.txt"}
    desk.say("look", attachments=[sent])
    desk.say("look", session="b", attachments=[sent])
    path = desk.home.workspace / "attachments" / sent["blob_id"] / "a.txt"

    assert desk.ask("sessions.delete", session="main")["files"] == 0
    assert path.read_bytes() == b"plan"
    assert desk.ask("sessions.delete", session="b")["files"] == 1
    assert not path.exists()


def test_files_are_removed_by_the_next_life_when_this_one_was_killed(open_desk) -> None:
    desk = open_desk("hi")
    blob_id = desk.upload(b"secret")
    desk.say("look", attachments=[{"blob_id": blob_id, "name": "a.txt"}])
    folder = desk.home.workspace / "attachments" / blob_id
    witness = desk.office.rows("SELECT id FROM inbox")[0][0]
    desk.home.removals.mkdir()
    told = {"witness": witness, "paths": [str(folder / "a.txt"), "/etc/passwd", str(desk.home.root / "x")]}
    (desk.home.removals / new_id(5)).write_text(json.dumps(told))

    desk.eraser.recover()
    assert folder.exists()
    assert list(desk.home.removals.iterdir()) == []

    (desk.home.removals / new_id(5)).write_text(json.dumps(told))
    desk.office.change("UPDATE inbox SET chat_id = '(deleted)'")
    desk.eraser.recover()
    until("the list to be done", lambda: not list(desk.home.removals.iterdir()))
    assert not folder.exists()
    assert desk.home.database.exists()


def test_deleted_message_that_is_sent_again_is_refused_clearly(open_desk) -> None:
    desk = open_desk("hi")
    client_id = fresh()
    turn_id = desk.say(client_id=client_id)["turn_id"]
    desk.ask("sessions.delete", session="main")

    with pytest.raises(UsageError, match="deleted with its session"):
        desk.say(client_id=client_id)
    assert desk.ask("resume", turn_id=turn_id)["text"] == ""
    assert desk.say("hello again")["text"] == "hi"


def test_session_cannot_be_called_as_deleted_ones_are(open_desk) -> None:
    desk = open_desk("hi")

    with pytest.raises(UsageError, match="No session can be called"):
        desk.say(session="(deleted)")

    assert desk.office.rows("SELECT count(*) FROM inbox") == [(0,)]


@pytest.mark.parametrize("standing", [GUEST_ATTENDED, OPERATOR_ATTENDED])
def test_process_of_a_turn_never_deletes(open_desk, standing: object) -> None:
    desk = open_desk("hi")
    desk.say()
    with pytest.raises(ToolDenied, match="Only a person"):
        desk.ask("sessions.delete", session="main", standing=standing)


@pytest.mark.parametrize("method", ["get", "title", "archive", "export"])
def test_process_of_a_guests_turn_reaches_no_session(open_desk, method: str) -> None:
    params = {"title": "x"} if method == "title" else {}
    with pytest.raises(FermixError, match="guest"):
        open_desk("hi").ask(f"sessions.{method}", session="main", standing=GUEST_ATTENDED, **params)
