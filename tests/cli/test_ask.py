"""`fermix ask` against a scripted daemon on a real socket."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import time
from typing import Any

import pytest

from fermix.ids import is_id


def test_answer_is_streamed_and_acknowledged(fermix: Any, daemon: Any) -> None:
    daemon.on["message"] = lambda request: request.say("Hel", "lo, ", "wörld ✓.")

    done = fermix("ask", "Say", "hello")

    assert (done.exit_code, done.stdout, done.stderr) == (0, "Hello, wörld ✓.\n", "")
    asked = daemon.asked("message")[0]
    assert asked["text"] == "Say hello"
    assert asked["cwd"] == str(fermix.root)
    assert is_id(asked["client_id"])
    assert daemon.asked("ack") == [{"turn_id": "T1"}]


def test_text_comes_before_the_turn_ends(fermix: Any, daemon: Any) -> None:
    def slow(request: Any) -> None:
        request.accept()
        request.event(1, "text_delta", text="first words ")
        request.cancelled.wait(20)
        request.complete("first words ", status="cancelled")

    daemon.on["message"] = slow
    process = fermix.start("ask", "x")
    try:
        assert process.stdout.read(12) == b"first words "
    finally:
        daemon._cancel(daemon.requests[0])
        process.wait(10)
        process.stdout.close()


def test_session_and_slash_command_are_passed_on(fermix: Any, daemon: Any) -> None:
    fermix("ask", "--session", "work", "/stop", "all")

    assert daemon.asked("message")[0]["session"] == "work"
    assert daemon.asked("message")[0]["text"] == "/stop all"


def test_standard_input_is_added_below_the_text(fermix: Any, daemon: Any) -> None:
    fermix("ask", "--stdin", "Review this", stdin="+ line one\n+ line two\n")

    assert daemon.asked("message")[0]["text"] == "Review this\n\n+ line one\n+ line two"


def test_standard_input_alone_is_a_message(fermix: Any, daemon: Any) -> None:
    fermix("ask", "--stdin", stdin="only this\n")

    assert daemon.asked("message")[0]["text"] == "only this"


def test_too_large_a_standard_input_is_refused_before_anything_is_sent(fermix: Any, daemon: Any) -> None:
    done = fermix("ask", "--stdin", "x", stdin="y" * (600 * 1024))

    assert done.exit_code == 2
    assert "larger than 512 KiB" in done.stderr
    assert daemon.requests == []


@pytest.mark.parametrize("size", [0, 10, 1024 * 1024, 2_500_000])
def test_attachment_is_uploaded_in_chunks_and_named(fermix: Any, daemon: Any, size: int) -> None:
    def blob(request: Any) -> None:
        chunk = base64.b64decode(request.params["data"])
        assert len(chunk) <= 1024 * 1024
        received.extend(chunk)
        request.result(blob_id="B1", size_bytes=len(received))

    received = bytearray()
    daemon.on["blob"] = blob
    content = os.urandom(size)
    (fermix.root / "photo.jpg").write_bytes(content)

    done = fermix("ask", "--attach", "photo.jpg", "What is this?")

    assert done.exit_code == 0, done.stderr
    assert bytes(received) == content
    blobs = daemon.asked("blob")
    assert [each["blob_id"] for each in blobs] == [None] + ["B1"] * (len(blobs) - 1)
    attachment = {"blob_id": "B1", "name": "photo.jpg", "media_type": "image/jpeg"}
    assert daemon.asked("message")[0]["attachments"] == [attachment]


def test_json_is_one_object_with_the_whole_answer(fermix: Any, daemon: Any) -> None:
    done = fermix("ask", "--json", "hi")

    answer = json.loads(done.stdout)
    assert (answer["text"], answer["status"], answer["turn_id"]) == ("Hello.", "completed", "T1")
    assert done.stderr == ""


def test_failed_turn_shows_what_there_is_and_says_why(fermix: Any, daemon: Any) -> None:
    def fails(request: Any) -> None:
        request.accept()
        request.event(1, "text_delta", text="I beg")
        error = {"code": "provider", "message": "The key was refused.", "hint": "fermix config set …"}
        request.complete("I beg", status="failed", error=error)

    daemon.on["message"] = fails

    done = fermix("ask", "x")
    as_json = fermix("ask", "--json", "x")

    assert (done.exit_code, done.stdout) == (1, "I beg\n")
    assert done.stderr == "fermix: The key was refused.\n  try: fermix config set …\n"
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["error"]["code"] == "provider"


def test_reason_of_a_failed_turn_is_said_once_and_never_as_the_answer(fermix: Any, daemon: Any) -> None:
    def fails(request: Any) -> None:
        request.accept()
        request.event(1, "text_delta", text="half an ans")
        error = {"code": "provider", "message": "The line broke.", "hint": None}
        request.complete("The line broke.", status="failed", error=error)

    daemon.on["message"] = fails

    done = fermix("ask", "x")

    assert (done.exit_code, done.stdout, done.stderr) == (1, "half an ans\n", "fermix: The line broke.\n")


def test_refused_file_is_named(fermix: Any, daemon: Any) -> None:
    (fermix.root / "big.bin").write_bytes(b"x")
    daemon.on["blob"] = lambda request: request.error("usage", "A file is over 64 MiB.")

    done = fermix("ask", "--attach", "big.bin", "x")

    assert done.exit_code == 2
    assert "fermix: 'big.bin' cannot be attached: A file is over 64 MiB." in done.stderr


def test_refused_message_is_told_with_its_code(fermix: Any, daemon: Any) -> None:
    daemon.on["message"] = lambda request: request.error(
        "queue_full", "Too many messages wait.", "try later"
    )

    done = fermix("ask", "x", "--json")

    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"] == {
        "code": "queue_full",
        "message": "Too many messages wait.",
        "hint": "try later",
    }


def test_timeout_cancels_the_turn_and_says_so(fermix: Any, daemon: Any) -> None:
    def never(request: Any) -> None:
        request.accept()
        request.cancelled.wait(20)
        request.complete("", status="cancelled")

    daemon.on["message"] = never
    began = time.monotonic()

    done = fermix("ask", "--timeout", "0.5", "x")

    assert done.exit_code == 1
    assert "No whole answer within 0.5 s; the turn was cancelled." in done.stderr
    assert daemon.asked("cancel") == [{"turn_id": "T1"}]
    assert time.monotonic() - began < 5


def test_interrupt_cancels_the_turn(fermix: Any, daemon: Any) -> None:
    def never(request: Any) -> None:
        request.accept()
        request.event(1, "text_delta", text="so far")
        request.cancelled.wait(20)
        request.complete("so far", status="cancelled")

    daemon.on["message"] = never
    process = fermix.start("ask", "x")
    assert process.stdout.read(6) == b"so far"
    process.send_signal(signal.SIGINT)

    assert process.wait(10) == 130
    assert b"Traceback" not in process.stdout.read()
    process.stdout.close()
    assert daemon.asked("cancel") == [{"turn_id": "T1"}]


def test_answer_survives_a_daemon_that_dies_in_the_middle(fermix: Any, daemon: Any) -> None:
    def dies(request: Any) -> None:
        request.accept()
        request.event(1, "text_delta", text="One, ")
        request.event(2, "text_delta", text="two")
        request.die()

    def resumes(request: Any) -> None:
        request.accept()
        request.event(1_000_000, "restarted")
        request.event(1_000_001, "text_delta", text="One, two, ")
        request.event(1_000_002, "text_delta", text="three.")
        request.complete("One, two, three.")

    daemon.on["message"] = dies
    daemon.on["resume"] = resumes

    done = fermix("ask", "count")

    assert (done.exit_code, done.stdout) == (0, "One, two, three.\n")
    assert daemon.asked("resume") == [{"turn_id": "T1", "after_seq": 2}]


def test_answer_told_differently_after_a_restart_is_written_whole(fermix: Any, daemon: Any) -> None:
    def restarts(request: Any) -> None:
        request.accept()
        request.event(1, "text_delta", text="Apples are")
        request.event(2, "restarted")
        request.event(3, "text_delta", text="Pears are fine.")
        request.complete("Pears are fine.")

    daemon.on["message"] = restarts

    assert fermix("ask", "x").stdout == "Apples are\n\nPears are fine.\n"


def test_message_is_sent_again_when_the_daemon_died_before_it_accepted(fermix: Any, daemon: Any) -> None:
    def answers_the_second_time(request: Any) -> None:
        if len(daemon.asked("message")) == 1:
            request.die()
        else:
            request.say("Here.")

    daemon.on["message"] = answers_the_second_time

    assert fermix("ask", "x").stdout == "Here.\n"
    first, second = daemon.asked("message")
    assert first["client_id"] == second["client_id"]


def test_whole_text_is_shown_when_nothing_was_streamed(fermix: Any, daemon: Any) -> None:
    def at_once(request: Any) -> None:
        request.accept()
        request.complete("All at once.")

    daemon.on["message"] = at_once

    assert fermix("ask", "x").stdout == "All at once.\n"


def test_steps_are_paragraphs_and_notices_go_to_stderr(fermix: Any, daemon: Any) -> None:
    def two_steps(request: Any) -> None:
        request.accept()
        request.event(1, "notice", text="The small built-in model answers.")
        request.event(2, "phase_change", phase="model")
        request.event(3, "text_delta", text="Let me look.")
        request.event(4, "tool_call_start", call_id="c", name="shell")
        request.event(5, "tool_call_complete", call_id="c", name="shell", arguments={"command": "ls"})
        request.event(6, "tool_result", call_id="c", name="shell", text="a", is_error=False)
        request.event(7, "never_heard_of", x=1)
        request.event(8, "text_delta", text="One file.")
        request.complete("One file.")

    daemon.on["message"] = two_steps

    done = fermix("ask", "x")

    assert done.stdout == "Let me look.\n\nOne file.\n"
    assert done.stderr == "The small built-in model answers.\n"


def test_notice_does_not_run_into_the_answer_where_both_go_to_one_place(fermix: Any, daemon: Any) -> None:
    def tells(request: Any) -> None:
        request.accept()
        request.event(1, "text_delta", text="cut off by leng")
        request.event(2, "notice", text="It was cut.")
        request.complete("cut off by leng")

    daemon.on["message"] = tells
    process = fermix.start("ask", "x")  # its stderr is its stdout

    assert process.communicate(timeout=30)[0] == b"cut off by leng\nIt was cut.\n"


def test_correction_is_a_paragraph_of_its_own(fermix: Any, daemon: Any) -> None:
    def corrects(request: Any) -> None:
        request.accept()
        request.event(1, "text_delta", text="It is 3.")
        request.event(2, "correction", text="It is 4.")
        request.complete("It is 3.")

    daemon.on["message"] = corrects

    assert fermix("ask", "x").stdout.startswith("It is 3.\n\nIt is 4.")


def test_encoding_without_the_characters_loses_none_of_the_others(fermix: Any, daemon: Any) -> None:
    daemon.on["message"] = lambda request: request.say("naïve ✓ \ud83d end")

    done = fermix("ask", "x", environment={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})

    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("na")
    assert done.stdout.endswith(" end\n")


def test_bytes_that_are_no_text_are_sent_as_what_can_be_read(fermix: Any, daemon: Any) -> None:
    done = subprocess.run(
        [*fermix.argv, "ask", b"caf\xe9 \xff"],
        env=fermix.environment,
        cwd=fermix.root,
        capture_output=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 0
    assert daemon.asked("message")[0]["text"].startswith("caf")


def test_reader_that_left_ends_ask_quietly(fermix: Any, daemon: Any) -> None:
    daemon.on["message"] = lambda request: request.say(*(f"line {number}\n" for number in range(20_000)))

    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" | head -n 1', "sh", *fermix.argv, "ask", "x"],
        env=fermix.environment,
        cwd=fermix.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("line 0\n", "")


def test_deleted_working_folder_is_no_reason_to_fail(fermix: Any, daemon: Any) -> None:
    gone = fermix.root / "gone"
    gone.mkdir()

    done = subprocess.run(
        ["/bin/sh", "-c", f'cd {gone}; rmdir {gone}; exec "$@"', "sh", *fermix.argv, "ask", "x"],
        env=fermix.environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert "cwd" not in daemon.asked("message")[0]


HOSTILE = "a\x1b]0;owned\x07b\x1b[2Jc\x9b31md\u202ee\rf"


def test_hostile_text_cannot_steer_a_terminal(fermix: Any, daemon: Any, person: Any) -> None:
    def hostile(request: Any) -> None:
        request.accept()
        request.event(1, "tool_call_complete", call_id="c", name="sh\x1b[2Jell", arguments={"x": HOSTILE})
        request.event(2, "notice", text=HOSTILE)
        request.event(3, "text_delta", text=HOSTILE + " end")
        request.complete(HOSTILE + " end")

    daemon.on["message"] = hostile
    someone = person("ask", "x")
    someone.sees("end")
    assert someone.leaves() == 0

    for sequence in ("\x1b]0;", "\x1b[2J", "\x9b", "\u202e", "\rf", "\x07"):
        assert sequence not in someone.raw
    assert "a\\x1b]0;owned\\x07b\\x1b[2Jc\\x9b31md\\u202ee\\x0df end" in someone.shown


def test_piped_text_is_left_as_it_is(fermix: Any, daemon: Any) -> None:
    daemon.on["message"] = lambda request: request.say("a\x1b[31mb")

    assert fermix("ask", "x").stdout == "a\x1b[31mb\n"


def test_tool_activity_is_told_on_a_terminal(fermix: Any, daemon: Any, person: Any) -> None:
    def works(request: Any) -> None:
        request.accept()
        request.event(1, "tool_call_complete", call_id="c", name="shell", arguments={"command": "ls -la"})
        request.event(2, "tool_result", call_id="c", name="shell", text="exit 2: no", is_error=True)
        request.event(3, "text_delta", text="Done.")
        request.complete("Done.")

    daemon.on["message"] = works
    someone = person("ask", "x")
    assert someone.leaves() == 0

    assert "· shell ls -la\n" in someone.shown
    assert "· shell failed: exit 2: no\n" in someone.shown
