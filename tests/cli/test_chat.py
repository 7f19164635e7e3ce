"""`fermix chat`: a person at a terminal, and a script without one."""

from __future__ import annotations

import stat
import subprocess
import threading
from typing import Any

import pytest

CTRL_C = "\x03"
CTRL_D = "\x04"
ALT_ENTER = "\x1b\r"
PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"
READY = "/help shows the keys"


def echo(request: Any) -> None:
    request.say(f"You said {len(request.params['text'])} characters.")


@pytest.fixture
def chatting(daemon: Any, person: Any) -> Any:
    """A person in front of a chat's prompt."""
    someone = person("chat")
    someone.sees(READY)
    someone.sees("›")
    return someone


def test_message_is_answered_and_ctrl_d_leaves(fermix: Any, daemon: Any, chatting: Any) -> None:
    daemon.on["message"] = echo
    chatting.type("hello\r")
    chatting.sees("You said 5 characters.")
    daemon.wait_asked("ack")

    chatting.type(CTRL_D)

    assert chatting.leaves() == 0
    assert chatting.echoes()
    assert daemon.asked("message")[0]["text"] == "hello"
    assert daemon.asked("message")[0]["session"] == "main"


@pytest.mark.parametrize(
    "keys", ["one" + ALT_ENTER + "two\r", PASTE_BEGIN + "one\r\ntwo" + PASTE_END + "\r"]
)
def test_message_of_several_lines_is_sent_as_one(daemon: Any, chatting: Any, keys: str) -> None:
    chatting.type(keys)
    daemon.wait_asked("message")

    assert daemon.asked("message")[0]["text"] == "one\ntwo"


def test_keys_pressed_during_an_answer_wait_for_the_prompt(daemon: Any, chatting: Any) -> None:
    def slow(request: Any) -> None:
        request.accept()
        request.event(1, "text_delta", text="Slowly, ")
        release.wait(10)
        request.event(2, "text_delta", text="done.")
        request.complete("Slowly, done.")

    release = threading.Event()
    daemon.on["message"] = slow
    chatting.type("first\r")
    chatting.sees("Slowly, ")
    daemon.on["message"] = echo
    chatting.forget()
    chatting.type("second\r" + CTRL_D)
    release.set()

    assert chatting.leaves() == 0
    assert "second" not in chatting.shown.partition("done.")[0]
    assert [each["text"] for each in daemon.asked("message")] == ["first", "second"]
    assert "You said 6 characters." in chatting.shown


def test_blank_message_is_not_sent(daemon: Any, chatting: Any) -> None:
    chatting.type("   \r")
    chatting.type("real\r")
    daemon.wait_asked("message")

    assert [each["text"] for each in daemon.asked("message")] == ["real"]


def test_ctrl_c_cancels_the_turn_and_the_chat_goes_on(daemon: Any, chatting: Any) -> None:
    def never(request: Any) -> None:
        request.accept()
        request.event(1, "text_delta", text="thinking aloud")
        request.cancelled.wait(20)
        request.complete("thinking aloud", status="cancelled")

    daemon.on["message"] = never
    chatting.type("go\r")
    chatting.sees("thinking aloud")
    chatting.type(CTRL_C)
    daemon.wait_asked("cancel")
    chatting.sees("stopped")

    daemon.on["message"] = echo
    chatting.type("still here?\r")
    chatting.sees("You said 11 characters.")
    chatting.type(CTRL_D)
    assert chatting.leaves() == 0


def test_second_ctrl_c_in_a_turn_leaves(daemon: Any, chatting: Any) -> None:
    daemon.on["message"] = lambda request: request.accept()
    daemon.on["cancel"] = lambda request: request.result(cancelled=1)
    chatting.type("go\r")
    daemon.wait_asked("message")
    chatting.type(CTRL_C)
    daemon.wait_asked("cancel")
    chatting.type(CTRL_C)

    assert chatting.leaves() == 130
    assert "Traceback" not in chatting.shown


def test_second_ctrl_c_at_the_prompt_leaves(chatting: Any) -> None:
    chatting.type("half a mess" + CTRL_C)
    chatting.sees("Ctrl-D leaves")
    chatting.type(CTRL_C)

    assert chatting.leaves() == 130


def test_keys_are_explained(daemon: Any, chatting: Any) -> None:
    chatting.type("/help\r")

    chatting.sees("Alt-Enter")


def test_what_was_typed_comes_back_and_is_kept_private(
    fermix: Any, daemon: Any, chatting: Any, person: Any
) -> None:
    chatting.type("remember me\r")
    daemon.wait_asked("ack")
    chatting.type(CTRL_D)
    assert chatting.leaves() == 0

    again = person("chat")
    again.sees("›")
    again.type("\x1b[A\r")
    daemon.wait_asked("message", 2)

    assert daemon.asked("message")[1]["text"] == "remember me"
    assert stat.S_IMODE((fermix.home / "chat_history").stat().st_mode) == 0o600


def test_earlier_messages_are_shown(daemon: Any, person: Any) -> None:
    earlier = [
        {"role": "user", "text": "What is 2 + 2?", "created_ms": 1_700_000_000_000},
        {"role": "assistant", "text": "Four.", "created_ms": 1_700_000_000_001},
    ]
    daemon.on["sessions.messages"] = lambda request: request.result(messages=earlier)

    someone = person("sessions", "resume", "sums")
    shown = someone.sees("›")

    assert "What is 2 + 2?" in shown
    assert "Four." in shown
    assert daemon.asked("sessions.messages")[-1]["session"] == "sums"


def test_new_chat_has_a_session_of_its_own(daemon: Any, person: Any) -> None:
    someone = person("chat", "--new")
    someone.sees("›")
    someone.type("hi\r")
    daemon.wait_asked("message")

    assert daemon.asked("message")[0]["session"].startswith("chat-20")


def test_chats_begun_in_the_same_second_have_sessions_of_their_own(fermix: Any, daemon: Any) -> None:
    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*fermix.argv, "chat", "--new"], env=fermix.environment, cwd=fermix.root, stdin=subprocess.PIPE
        )

    for chat in [start() for _ in range(3)]:
        chat.communicate(b"hi\n", timeout=30)

    assert len({asked["session"] for asked in daemon.asked("message")}) == 3


@pytest.mark.parametrize("columns", [12, 200])
def test_sign_of_life_fits_in_its_line(daemon: Any, person: Any, columns: int) -> None:
    daemon.on["message"] = lambda request: (request.accept(), request.cancelled.wait(20))
    someone = person("chat", columns=columns)
    someone.sees("›")
    someone.forget()
    someone.type("x\r")
    someone.sees("thinking")
    spun = [line.partition("\r")[0] for line in someone.shown.split("\r") if "thinking" in line]

    assert spun
    assert all(len(line) < columns for line in spun)


def test_markdown_is_rendered_when_its_block_is_whole(daemon: Any, chatting: Any) -> None:
    def markdown(request: Any) -> None:
        request.say("# A tit", "le\n\nSome **bo", "ld** words.\n\n```\ncode **stays**\n```\nThe e", "nd.")

    daemon.on["message"] = markdown
    chatting.forget()
    chatting.type("go\r")
    shown = chatting.sees("The end.")
    daemon.wait_asked("ack")

    assert "Some bold words." in shown
    assert "code **stays**" in shown


def test_failed_turn_is_told_and_the_chat_goes_on(daemon: Any, chatting: Any) -> None:
    def fails(request: Any) -> None:
        request.accept()
        error = {"code": "provider", "message": "The key was refused.", "hint": "fermix config check"}
        request.complete("", status="failed", error=error)

    daemon.on["message"] = fails
    chatting.type("x\r")
    chatting.sees("fermix: The key was refused.")

    daemon.on["message"] = echo
    chatting.type("again\r")
    chatting.sees("You said 5 characters.")


def test_answer_survives_a_daemon_that_dies_in_the_middle(daemon: Any, chatting: Any) -> None:
    def dies(request: Any) -> None:
        request.accept()
        request.event(1, "text_delta", text="One, ")
        request.die()

    def resumes(request: Any) -> None:
        request.accept()
        request.event(1_000_000, "restarted")
        request.event(1_000_001, "text_delta", text="One, two.")
        request.complete("One, two.")

    daemon.on["message"] = dies
    daemon.on["resume"] = resumes
    chatting.forget()
    chatting.type("count\r")
    chatting.sees("One, two.")
    daemon.wait_asked("ack")

    assert daemon.asked("resume") == [{"turn_id": "T1", "after_seq": 1}]


def test_hostile_text_cannot_steer_the_terminal(daemon: Any, chatting: Any) -> None:
    def hostile(request: Any) -> None:
        request.accept()
        request.event(1, "tool_call_start", call_id="c", name="sh\x1b]0;owned\x07")
        request.event(
            2, "tool_call_complete", call_id="c", name="sh\x1b]0;owned\x07", arguments={"a": "\x9b2J"}
        )
        request.event(3, "phase_change", phase="\x1b]0;owned\x07")
        request.event(4, "text_delta", text="[x](javascript:1) \x1b]0;owned\x07 \u202e")
        request.event(5, "text_delta", text="the end\n\n")
        request.complete("the end")

    daemon.on["message"] = hostile
    chatting.forget()
    chatting.type("x\r")
    chatting.sees("the end")
    daemon.wait_asked("ack")

    assert "\x1b]0;owned" not in chatting.raw
    assert "\x1b]8;" not in chatting.raw  # a link that hides where it goes
    assert not set("\x9b\u202e\x07") & set(chatting.raw)


def test_without_a_terminal_every_line_is_a_message(fermix: Any, daemon: Any) -> None:
    daemon.on["message"] = echo

    done = fermix("chat", stdin="one\n\nthree\n/quit\nnever\n")

    assert done.exit_code == 0, done.stderr
    assert done.stdout == "You said 3 characters.\nYou said 5 characters.\n"


def test_without_a_terminal_the_last_failure_is_the_exit_code(fermix: Any, daemon: Any) -> None:
    daemon.on["message"] = lambda request: request.error("model_refused", "There is no such model.")

    done = fermix("chat", stdin="one\n")

    assert done.exit_code == 2  # as if the command itself had seen it
    assert done.stderr.count("fermix: There is no such model.") == 1
