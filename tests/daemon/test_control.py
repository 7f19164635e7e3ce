"""The methods of the control socket, on a gateway with a scripted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from fermix.errors import ProtocolError, ToolDenied, UsageError
from fermix.tasks import TaskGroup
from fermix.trust import GUEST_ATTENDED, OPERATOR_ATTENDED, Standing
from tests.daemon.client import Client, fresh
from tests.fakes import call
from tests.gateway.office import until
from tests.gateway.test_turns import wait_cancelled

OWNER_ONLY = ["resume", "ack", "cancel", "blob", "sessions.list", "sessions.messages", "stop"]


@pytest.fixture
def open_desk(tmp_path: Path) -> Iterator[Callable[..., Client]]:
    desks: list[Client] = []

    def open_one(*script: object, **settings: object) -> Client:
        for desk in desks:
            desk.office.crash()
        desks.append(Client(tmp_path, *script, **settings))
        return desks[-1]

    yield open_one
    for desk in desks:
        desk.close()


def test_message_gives_the_turns_events_and_then_its_end(open_desk) -> None:
    desk = open_desk("hi there")

    result = desk.say(session="work")

    assert (result["text"], result["status"], result["session"]) == ("hi there", "completed", "work")
    assert [event["name"] for event in desk.events if event["name"] != "phase_change"] == [
        "accepted",
        "text_delta",
        "done",
    ]
    assert desk.events[0]["seq"] == 0
    assert desk.events[0]["data"] == {"turn_id": result["turn_id"], "session": "work"}


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4, 1_000_000])
def test_resume_ends_with_the_whole_result_whatever_was_seen(open_desk, after: int) -> None:
    desk = open_desk("hi there")
    turn_id = desk.say()["turn_id"]

    result = desk.ask("resume", turn_id=turn_id, after_seq=after)

    assert (result["text"], result["status"]) == ("hi there", "completed")
    assert [event["seq"] for event in desk.events[1:]] == [seq for seq in (1, 2, 3, 4) if seq > after]


def test_turn_is_resumed_after_a_restart_with_numbers_above_those_seen(open_desk) -> None:
    turn_id = open_desk(call("act"), "hi there").say()["turn_id"]
    desk = open_desk("never")
    desk.office.gateway.recover()

    result = desk.ask("resume", turn_id=turn_id, after_seq=5_000_000)

    assert result["text"] == "hi there"
    names = [event["name"] for event in desk.events]
    assert names == [
        "accepted",
        "restarted",
        "tool_call_start",
        "tool_call_complete",
        "tool_result",
        "text_delta",
        "done",
    ]
    assert all(event["seq"] > 5_000_000 for event in desk.events[1:])


def test_same_client_id_after_a_restart_is_the_same_turn(open_desk) -> None:
    client_id = fresh()
    first = open_desk("one").say(client_id=client_id)
    desk = open_desk("two")
    desk.office.gateway.recover()

    again = desk.say(client_id=client_id)

    assert (again["turn_id"], again["text"]) == (first["turn_id"], "one")


@pytest.mark.parametrize("turn_id", ["", "x" * 100, "01HF7YAT00000000000000000A"])
def test_unknown_turn_cannot_be_resumed_and_is_quietly_not_there_for_the_rest(
    open_desk, turn_id: str
) -> None:
    desk = open_desk()

    with pytest.raises(UsageError, match="No turn"):
        desk.ask("resume", turn_id=turn_id)
    assert desk.ask("ack", turn_id=turn_id) == {"delivered": False}
    assert desk.ask("cancel", turn_id=turn_id) == {"cancelled": 0}


@pytest.mark.parametrize("seq", [-1, 2**64, 2**53 + 1])
def test_number_no_event_can_have_is_refused(open_desk, seq: int) -> None:
    with pytest.raises(msgspec.ValidationError, match="after_seq"):
        open_desk().ask("resume", turn_id="x", after_seq=seq)


def test_second_acknowledgement_says_that_there_was_nothing_left(open_desk) -> None:
    desk = open_desk()
    turn_id = desk.say()["turn_id"]

    assert [desk.ask("ack", turn_id=turn_id)["delivered"] for _ in range(2)] == [True, False]
    assert desk.office.rows("SELECT state FROM inbox") == [("committed",)]


def test_running_and_waiting_turns_can_be_cancelled(open_desk) -> None:
    desk = open_desk(call("act"), "never")
    desk.office.on_run = wait_cancelled
    results, group = {}, TaskGroup("clients")
    for number in range(2):
        group.start(lambda number=number: results.update({number: desk.say()}))
        until("it to be taken", lambda number=number: len(desk.office.watch._open) == number + 1)
    until("the tool to run", lambda: desk.office.ran)
    running, waiting = list(desk.office.watch._open)

    assert desk.ask("cancel", turn_id=waiting) == {"cancelled": 1}
    assert desk.ask("cancel", session="other") == {"cancelled": 0}
    assert desk.ask("cancel", session="main") == {"cancelled": 1}

    assert group.join(10)
    assert {results[number]["status"] for number in range(2)} == {"cancelled"}
    assert desk.ask("cancel", turn_id=running) == {"cancelled": 0}


@pytest.mark.parametrize("session", ["", " a", "a ", "a\nb", "\x1b[31m", "x" * 65])
def test_name_that_is_no_session_is_refused(open_desk, session: str) -> None:
    desk = open_desk()

    for ask in (desk.say, lambda session: desk.ask("sessions.messages", session=session)):
        with pytest.raises(UsageError, match="is not a session name"):
            ask(session=session)


def test_sessions_are_listed_latest_first_with_their_last_words(open_desk) -> None:
    desk = open_desk(lambda request: "re " + request.messages[-1].text)
    for session in ("a", "b", "a"):
        desk.office.clock.ms += 1000
        desk.say(f"to {session}", session=session)

    listed = desk.ask("sessions.list")["sessions"]

    assert [(one["session"], one["message_count"], one["last_text"]) for one in listed] == [
        ("a", 4, "re to a"),
        ("b", 2, "re to b"),
    ]
    assert len(desk.ask("sessions.list", limit=1)["sessions"]) == 1
    assert len(desk.ask("sessions.list", limit=-5)["sessions"]) == 1


def test_messages_of_a_session_are_words_only_and_bounded(open_desk) -> None:
    desk = open_desk(call("act"), "x" * 10_000)
    desk.say("please")

    listed = desk.ask("sessions.messages", session="main")["messages"]

    assert [(one["role"], len(one["text"])) for one in listed] == [("user", 6), ("assistant", 4000)]
    assert desk.ask("sessions.messages", session="never used") == {"messages": []}
    assert len(desk.ask("sessions.messages", session="main", limit=1)["messages"]) == 1


@pytest.mark.parametrize("client_id", ["", "x", "01hf7yat00000000000000000a", "Z" * 26])
def test_client_id_that_is_no_ulid_is_refused(open_desk, client_id: str) -> None:
    with pytest.raises(ProtocolError, match="is not a ULID"):
        open_desk().say(client_id=client_id)


@pytest.mark.parametrize(("cwd", "is_kept"), [("/srv", True), ("relative", False), (None, False)])
def test_only_an_absolute_working_folder_is_kept(open_desk, cwd: str | None, is_kept: bool) -> None:
    desk = open_desk()
    turn_id = desk.say(cwd=cwd)["turn_id"]

    assert desk.office.inbox.of_turn(turn_id).inbound.cwd == (cwd if is_kept else None)


def test_attachment_is_named_to_the_model_and_lies_in_the_workspace(open_desk) -> None:
    desk = open_desk(lambda request: request.messages[-1].text)
    blob_id = desk.upload(b"hel", b"lo")
    attachment = {"blob_id": blob_id, "name": "../../etc/pass\nwd", "media_type": "text/plain"}

    text = desk.say("look", attachments=[attachment])["text"]

    target = desk.home.workspace / "attachments" / blob_id / "passwd"
    assert target.read_bytes() == b"hello"
    assert text == f"look\n[attached: passwd (text/plain, 5 bytes) at {target}]"


@pytest.mark.parametrize("data", ["not base64!", "a", "aGk=\n="])
def test_piece_that_is_not_base64_is_refused(open_desk, data: str) -> None:
    with pytest.raises(ProtocolError, match="not base64"):
        open_desk().ask("blob", data=data)


def test_piece_over_a_mebibyte_is_refused(open_desk) -> None:
    with pytest.raises(ProtocolError, match="1048577 bytes; at most 1048576"):
        open_desk().upload(b"x" * 1_048_577)


@pytest.mark.parametrize("method", OWNER_ONLY)
def test_process_of_a_guests_turn_reaches_messages_only(open_desk, method: str) -> None:
    desk = open_desk()
    params = {
        "resume": {"turn_id": "x"},
        "ack": {"turn_id": "x"},
        "blob": {"data": ""},
        "sessions.messages": {"session": "main"},
    }

    with pytest.raises(ToolDenied, match="guest's turn"):
        desk.ask(method, standing=GUEST_ATTENDED, **params.get(method, {}))
    assert desk.stops == []


def test_process_the_daemon_started_is_whom_its_turn_was_and_unattended(open_desk) -> None:
    desk = open_desk()
    unattended = OPERATOR_ATTENDED.narrowed(Standing(OPERATOR_ATTENDED.trust, attended=False))

    said = desk.ask("message", standing=unattended, text="/whoami", client_id=fresh())["text"]
    assert "operator (unattended)" in said
    assert (
        "guest (attended)"
        in desk.ask("message", standing=GUEST_ATTENDED, text="/whoami", client_id=fresh())["text"]
    )
    assert desk.ask("stop", standing=unattended, only_private=True) == {"stopping": True}
    assert desk.stops == [True]


def test_only_a_person_has_the_settings_reloaded(open_desk) -> None:
    desk = open_desk()
    unattended = OPERATOR_ATTENDED.narrowed(Standing(OPERATOR_ATTENDED.trust, attended=False))

    for standing in (unattended, GUEST_ATTENDED):
        with pytest.raises(ToolDenied, match="Only a person"):
            desk.ask("reload", standing=standing)

    assert desk.ask("reload")["unchanged"] is True


def test_process_of_a_guest_neither_sees_nor_stops_the_owners_conversation(open_desk) -> None:
    desk = open_desk(lambda request: " | ".join(message.text for message in request.messages))
    said = fresh()
    desk.say("my secret plan", client_id=said)

    answer = desk.ask("message", standing=GUEST_ATTENDED, text="what was said?", client_id=fresh())

    assert (answer["text"], answer["session"]) == ("what was said?", "main (guest)")
    with pytest.raises(UsageError, match="another session"):
        desk.ask("message", standing=GUEST_ATTENDED, text="my secret plan", client_id=said)
    assert desk.say("go on")["text"].startswith("my secret plan | ")


def test_an_id_that_comes_again_with_other_words_is_refused(open_desk) -> None:
    desk = open_desk()
    said = fresh()
    first = desk.ask("message", text="buy milk", client_id=said)

    with pytest.raises(UsageError, match="other words"):
        desk.ask("message", text="buy bread", client_id=said)

    assert desk.ask("message", text="buy milk", client_id=said)["turn_id"] == first["turn_id"]
