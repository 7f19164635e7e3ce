"""Deleting a session: all of it goes, nothing else, whatever happens meanwhile."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import pytest
from gevent.event import Event

from fermix.errors import SessionBusy, StoreError
from fermix.gateway.erase import Eraser
from fermix.messages import Attachment, ConversationKey, Inbound
from fermix.tasks import TaskGroup, sleep
from tests.fakes import call
from tests.gateway.office import Office, until

MAIN = ConversationKey("local", "main")


class FakeFiles:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[str, object]] = []
        self.typed: set[bytes] = set()
        self.left: list[tuple[str, str]] = []

    def forget_typed(self, digests: Collection[bytes]) -> None:
        self.typed = set(digests)

    def intend(self, removal_id: str, witness_id: str, paths: Iterable[str]) -> None:
        self.said.append(("intend", (witness_id, list(paths))))

    def carry_out(self, removal_id: str) -> None:
        self.said.append(("carry out", removal_id))

    def finish(self, removal_id: str) -> None:
        self.said.append(("finish", removal_id))

    def give_up(self, removal_id: str) -> None:
        self.said.append(("give up", removal_id))

    def waiting(self) -> list[tuple[str, str]]:
        return self.left


def eraser_of(office: Office, files: FakeFiles | None = None) -> Eraser:
    return Eraser(
        office.db,
        queue=office.gateway.queue,
        turns=office.turns,
        inbox=office.inbox,
        files=files or FakeFiles(),
        now_ms=office.clock.now_ms,
    )


def bytes_of(office: Office, folder: Path) -> bytes:
    """Every byte of every file of the database."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("memory.db*")))


def test_deleted_words_are_in_no_file_of_the_database(
    open_office: Callable[..., Office], tmp_path: Path
) -> None:
    office = open_office(lambda request: f"Echo: {request.messages[-1].text}")
    dice = random.Random(7)
    for number in range(120):
        secret = f"mandragora-{number} " * dice.choice((1, 5, 40, 90, 170, 300, 900))
        office.say(f"plain-{number}", id=f"p{number}", chat=dice.choice(("work", "home")))
        office.say(secret, id=f"s{number}")

    erased = eraser_of(office).erase(MAIN)

    assert erased is not None
    assert erased.messages == 240
    found = bytes_of(office, tmp_path)
    assert b"mandragora" not in found
    assert b"plain-119" in found
    assert office.messages() == []
    assert len(office.messages("work")) + len(office.messages("home")) == 240


def test_words_are_gone_after_a_long_read_has_let_go_of_the_log(
    open_office: Callable[..., Office], tmp_path: Path
) -> None:
    office = open_office("fine")
    office.say("mandragora")
    reading, done = Event(), Event()
    tasks = TaskGroup("reader")

    def read() -> None:
        lane_reads = iter(range(2000))

        def work(connection: object) -> None:
            reading.set()
            connection.native.execute("SELECT count(*) FROM inbox").fetchone()
            while not done.is_set() and next(lane_reads, None) is not None:
                time.sleep(0)  # on a reader's own thread

        office.db.read(work)

    tasks.start(read, name="read")
    assert reading.wait(10)
    eraser = eraser_of(office)
    eraser.erase(MAIN)
    done.set()
    until("the words to be gone", lambda: b"mandragora" not in bytes_of(office, tmp_path))
    eraser.stop(1.0)
    tasks.stop(1.0)


def test_running_turn_is_stopped_and_waiting_messages_are_dropped(
    open_office: Callable[..., Office],
) -> None:
    office = open_office(call("act", word="slowly"), "never said")
    began = Event()

    def run(ctx: object) -> None:
        began.set()
        ctx.turn.cancel.wait(10)

    office.on_run = run
    running = office.submit("act now", id="m1")
    assert began.wait(10)
    waiting = office.submit("and then", id="m2")
    log = office.watch.find(waiting.turn_id)

    eraser_of(office).erase(MAIN)

    assert log.is_over
    assert log.ending["status"] == "cancelled"
    states = dict(office.rows("SELECT id, state FROM inbox"))
    assert states[waiting.id] == "dropped"
    assert states[running.id] in ("dropped", "committed")
    assert office.rows("SELECT body FROM outbox") == []
    assert office.gateway.queue.waiting == 0


def test_message_that_arrives_meanwhile_begins_a_fresh_conversation(
    open_office: Callable[..., Office],
) -> None:
    office = open_office(lambda request: f"{len(request.messages)} messages")
    office.say("first", id="m1")
    old = office.conversations.find(MAIN)
    late = []

    class Interrupted(FakeFiles):
        def intend(self, removal_id: str, witness_id: str, paths: Iterable[str]) -> None:
            late.append(office.submit("late", id="m2"))

    eraser_of(office, Interrupted()).erase(MAIN)

    assert office.done(late[0])["status"] == "completed"
    fresh = office.conversations.find(MAIN)
    assert fresh is not None
    assert fresh.id != old.id
    assert office.messages()[0].text == "late"


def test_message_of_a_deleted_session_is_the_same_message_when_it_is_sent_again(
    open_office: Callable[..., Office],
) -> None:
    office = open_office("one", "two")
    office.say("hello", id="m1")
    eraser_of(office).erase(MAIN)

    again = office.submit("hello", id="m1")

    assert again.key.chat_id == "(deleted)"
    assert again.inbound.text == ""
    assert office.messages() == []
    assert office.model.requests[1:] == []


def test_next_life_takes_nothing_up_of_a_deleted_session(open_office: Callable[..., Office]) -> None:
    office = open_office(call("act"), "done")
    office.on_run = lambda ctx: ctx.turn.cancel.wait(10)
    office.submit("one", id="m1")
    until("the tool to run", lambda: office.ran)
    office.submit("two", id="m2")
    eraser_of(office).erase(MAIN)

    office = open_office("hi again")
    office.gateway.recover()

    assert office.gateway.queue.waiting == 0
    assert office.inbox.unfinished() == []
    assert office.rows("SELECT count(*) FROM messages") == [(0,)]
    assert office.say("new", id="m3") == "hi again"


@pytest.mark.parametrize("session", ["nobody", "(deleted)"])
def test_session_that_is_none_is_told(open_office: Callable[..., Office], session: str) -> None:
    office = open_office("one")
    office.say("hello")

    assert eraser_of(office).erase(ConversationKey("local", session)) is None
    assert len(office.messages()) == 2


def test_second_deletion_at_the_same_time_is_refused(open_office: Callable[..., Office]) -> None:
    office = open_office("one")
    office.say("hello")

    with office.gateway.queue.hold(MAIN), pytest.raises(SessionBusy, match="being deleted already"):
        eraser_of(office).erase(MAIN)
    assert len(office.messages()) == 2


def test_refusing_disk_deletes_nothing_and_what_waits_is_answered(
    open_office: Callable[..., Office],
) -> None:
    office = open_office("one", "two")
    office.say("hello", id="m1")
    office.change(
        "CREATE TRIGGER refuse BEFORE DELETE ON messages BEGIN SELECT raise(ABORT, 'no room'); END"
    )

    with pytest.raises(StoreError):
        eraser_of(office).erase(MAIN)

    assert [message.text for message in office.messages()] == ["hello", "one"]
    assert office.say("still here?", id="m2") == "two"


def test_files_are_written_down_before_and_removed_after(open_office: Callable[..., Office]) -> None:
    office = open_office("one")
    message = Inbound(
        key=MAIN,
        platform_id="m1",
        sender_id="uid 0",
        text="look",
        attachments=(Attachment("/w/attachments/A/a.txt", "a.txt", "text/plain", 3),),
        received_ms=1,
    )
    office.done(office.send(message))
    files = FakeFiles()
    eraser = eraser_of(office, files)

    erased = eraser.erase(MAIN)

    assert erased.files == 1
    assert [name for name, _ in files.said] == ["intend", "carry out", "finish"]
    assert files.said[0][1][1] == ["/w/attachments/A/a.txt"]


def test_next_life_removes_what_was_deleted_and_leaves_what_was_not(
    open_office: Callable[..., Office], tmp_path: Path
) -> None:
    office = open_office("one")
    kept = office.submit("mandragora", id="m1", chat="kept")
    gone = office.submit("belladonna", id="m2")
    office.done(kept), office.done(gone)
    files = FakeFiles()
    eraser = eraser_of(office, files)
    # Killed right after the commit, and, of another one, right before it.
    office.db.write(lambda connection: eraser._delete(connection, MAIN, 99))
    office = open_office("two")
    files.left = [("R1", kept.id), ("R2", gone.id)]

    eraser_of(office, files).recover()

    until("the lists to be done", lambda: ("finish", "R2") in files.said)
    assert files.said == [("give up", "R1"), ("carry out", "R2"), ("finish", "R2")]
    found = bytes_of(office, tmp_path)
    assert b"belladonna" not in found
    assert b"mandragora" in found


def test_deletion_at_any_moment_of_a_turn_ends_it(
    open_office: Callable[..., Office], caplog: pytest.LogCaptureFixture
) -> None:
    office = open_office(lambda request: call("act") if len(request.messages) % 2 else "done")
    eraser = eraser_of(office)
    dice = random.Random(5)
    for number in range(60):
        text = "go " * dice.choice((1, 8000))  # a long one is read back from its row
        entries = [office.submit(text, id=f"m{number}-{each}") for each in range(3)]
        logs = [office.watch.find(entry.turn_id) for entry in entries]
        for _ in range(dice.randrange(12)):
            sleep(0)
        eraser.erase(MAIN)
        assert all(log is None or log.is_over for log in logs)
        assert office.rows("SELECT count(*) FROM messages") == [(0,)]
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
