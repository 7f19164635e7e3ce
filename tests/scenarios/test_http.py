"""The HTTP API of a whole daemon: answers, crashes, drains, tokens."""

from __future__ import annotations

import json
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fermix.errors import FermixError
from tests.bot import CHECKOUT, Bot, Model, fresh_id, running, wait_for
from tests.scenarios.caller import Caller

SLOW = {
    "rules": [
        {"when": "", "then": [{"say": "one two three four five six seven", "chunks": 7, "delay_ms": 150}]}
    ]
}
ECHO = {"rules": [{"when": "", "then": [{"say": "You said: {text}"}]}]}


def is_delivered(bot: Bot, turn_id: str) -> bool:
    """Whether the reply counts as delivered: there is then nothing left to acknowledge."""
    with bot.connect() as connection:
        return not connection.call("ack", {"turn_id": turn_id}, 10.0)["delivered"]


def test_messages_over_http_and_the_command_line_are_one_conversation() -> None:
    with running(ECHO, full=True) as bot:
        caller = Caller(bot)
        bot.say("from the shell", session="work")

        status, answer = caller.ask("POST", "/message", {"text": "from a program", "session": "work"})

        said = caller.ask("GET", "/sessions/work/messages")[1]["messages"]
        assert (status, answer["text"]) == (200, "You said: from a program")
        assert [each["text"] for each in said] == [
            "from the shell",
            "You said: from the shell",
            "from a program",
            "You said: from a program",
        ]
        assert is_delivered(bot, answer["turn_id"])


def test_sessions_are_kept_over_http() -> None:
    with running(ECHO, full=True) as bot:
        caller = Caller(bot)
        caller.ask("POST", "/message", {"text": "hello", "session": "a/b"})

        titled = caller.ask("PATCH", "/sessions/a%2Fb", {"title": "Greetings", "archived": True})[1]
        in_use = caller.ask("GET", "/sessions")[1]["sessions"]
        away = caller.ask("GET", "/sessions?archived=true")[1]["sessions"]
        exported = json.loads(caller.text("/sessions/a%2Fb/export"))
        markdown = caller.text("/sessions/a%2Fb/export?format=markdown")
        deleted = caller.ask("DELETE", "/sessions/a%2Fb")
        gone = caller.ask("GET", "/sessions/a%2Fb")

        assert (titled["title"], titled["session"], titled["message_count"]) == ("Greetings", "a/b", 2)
        assert (in_use, [each["session"] for each in away]) == ([], ["a/b"])
        assert [each["text"] for each in exported["messages"]] == ["hello", "You said: hello"]
        assert markdown.startswith("# Greetings\n")
        assert "You said: hello" in markdown
        assert deleted[0] == 200
        assert (gone[0], gone[1]["error"]["code"]) == (404, "session_unknown")


def test_a_stream_is_gone_on_with_after_the_worker_was_killed_in_it() -> None:
    with running(SLOW, full=True) as bot:
        caller = Caller(bot)
        body = {"text": "count", "client_id": fresh_id()}
        shown, last = "", None
        with caller.events(body) as events:
            for id, name, data in events:
                last = id
                if name == "text_delta":
                    shown += data["text"]
                    if "two" in shown:
                        bot.kill(bot.worker)
        assert "seven" not in shown

        wait_for("the daemon to be back", bot.is_ready)
        names = []
        with caller.events(body, after=last) as events:
            for _, name, data in events:
                names.append(name)
                if name == "restarted":
                    shown = ""
                elif name == "text_delta":
                    shown += data["text"]
                elif name == "done":
                    done = data

        assert "restarted" in names
        assert names[-1] == "done"
        assert shown == done["text"] == "one two three four five six seven"
        assert len(caller.ask("GET", "/sessions/main/messages")[1]["messages"]) == 2


def test_a_drained_daemon_hands_a_streams_turn_to_the_next() -> None:
    with running(SLOW, full=True, config="[runtime]\ndrain_s = 0.2\n") as bot:
        caller = Caller(bot)
        body = {"text": "count", "client_id": fresh_id()}
        with caller.events(body) as events:
            id = next(id for id, name, data in events if name == "text_delta")
            bot.close_daemons()
            names = [name for _, name, _ in events]
        assert "done" not in names

        bot.start()
        again = Caller(bot)
        with again.events(body, after=id) as events:
            last = list(events)[-1]

        assert last[1] == "done"
        assert last[2]["text"] == "one two three four five six seven"


def test_a_client_that_hung_up_finds_its_answer_with_the_same_id() -> None:
    with running(SLOW, full=True) as bot:
        caller = Caller(bot)
        body = {"text": "count", "client_id": fresh_id()}
        with caller.events(body) as events:
            turn_id = next(events)[2]["turn_id"]
        wait_for(
            "the turn to end",
            lambda: bot.resume(turn_id, 0).result["status"] == "completed",
        )

        status, answer = caller.ask("POST", "/message", body)

        assert (status, answer["turn_id"]) == (200, turn_id)
        assert answer["text"] == "one two three four five six seven"
        assert is_delivered(bot, turn_id)


def test_two_clients_with_one_id_get_one_turn() -> None:
    with running(SLOW, full=True) as bot:
        caller = Caller(bot)
        body = {"text": "count", "client_id": fresh_id()}
        with caller.events(body) as first, caller.events(body) as second:
            ends = [list(events)[-1] for events in (first, second)]

        assert ends[0] == ends[1]
        assert ends[0][1] == "done"


def test_a_revoked_token_ends_its_stream_while_the_turn_goes_on() -> None:
    with running(SLOW, full=True) as bot:
        with bot.connect() as connection:
            token = connection.call("tokens.create", {"name": "phone"}, 10.0)["token"]
        phone, local = Caller(bot, token), Caller(bot)
        body = {"text": "count", "client_id": fresh_id()}
        names = []
        with phone.events(body) as events:
            for _, name, _ in events:
                names.append(name)
                if names.count("text_delta") == 1 and name == "text_delta":
                    with bot.connect() as connection:
                        connection.call("tokens.revoke", {"name": "phone"}, 10.0)
        _, answer = local.ask("POST", "/message", body)

        assert names[-1] == "error"
        assert "done" not in names
        assert phone.ask("GET", "/sessions")[0] == 401
        assert answer["status"] == "completed"


def test_a_process_of_a_turn_can_neither_mint_nor_list_nor_revoke_tokens() -> None:
    verbs = ("create mine", "list", "revoke phone")
    script = "; ".join(
        f"echo {verb}; PYTHONPATH={CHECKOUT} {sys.executable} -m fermix tokens {verb} --json"
        for verb in verbs
    )  # told apart, so that three equal answers are not folded into one
    call = {"tool_calls": [{"name": "shell", "arguments": {"script": script}}]}
    with running({"steps": [call, {"say": "done"}]}, full=True) as bot:
        with bot.connect() as connection:
            connection.call("tokens.create", {"name": "phone"}, 10.0)

        reply = bot.say("get in")

        with bot.connect() as connection:
            left = connection.call("tokens.list", {}, 10.0)["tokens"]
        result = next(event.data["text"] for event in reply.events if event.name == "tool_result")
        assert result.count("tool_denied") == 3
        assert [each["name"] for each in left] == ["phone"]


STEAL = """
import http.client, os, sys
from pathlib import Path
home = Path(os.environ["FERMIX_HOME"])
link = http.client.HTTPConnection(sys.argv[1], timeout=10)
headers = {"Authorization": "Bearer " + (home / "api-token").read_text().strip()}
link.request("GET", "/sessions", headers=headers)
answer = link.getresponse()
print("GOT", answer.status, answer.read().decode())
"""


@pytest.mark.parametrize("prefix", ["", "setsid -w"])
def test_a_process_of_a_turn_that_reads_the_local_token_gets_nothing_for_it(prefix: str) -> None:
    model = Model({})
    bot = Bot(model, full=True)
    try:
        bot.start()
        program = f"{prefix} {sys.executable} -c '{STEAL}' {bot.status()['http']}"
        call = {"tool_calls": [{"name": "shell", "arguments": {"script": program}}]}
        model.script({"steps": [call, {"say": "done"}]})

        reply = bot.say("get in")

        result = next(event.data["text"] for event in reply.events if event.name == "tool_result")
        assert "GOT 403" in result
        assert "tool_denied" in result
        assert Caller(bot).ask("GET", "/sessions")[0] == 200
    finally:
        bot.close()
        model.close()


LEAVE = """
import json, os, socket, struct, sys
from pathlib import Path
token = (Path(os.environ["FERMIX_HOME"]) / "api-token").read_text().strip()
body = json.dumps({"text": "obey", "session": "stolen"})
head = f"POST /message HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Bearer {token}\\r\\n"
head += f"Content-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
host, _, port = sys.argv[1].partition(":")
for _ in range(20):
    link = socket.create_connection((host, int(port)), timeout=10)
    link.sendall((head + body).encode())
    if sys.argv[2] == "abort":
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.close()
os._exit(0)
"""


@pytest.mark.parametrize("how", ["end", "abort"])
def test_a_process_of_a_turn_that_leaves_at_once_gets_nothing_either(how: str) -> None:
    model = Model({})
    bot = Bot(model, full=True)
    try:
        bot.start()
        program = f"{sys.executable} -c '{LEAVE}' {bot.status()['http']} {how}"
        call = {"tool_calls": [{"name": "shell", "arguments": {"script": program}}]}
        model.script({"rules": [{"when": "get in", "then": [call, {"say": "done"}]}]})

        reply = bot.say("get in")

        result = next(event.data for event in reply.events if event.name == "tool_result")
        assert not result["is_error"], result["text"]
        known = [each["session"] for each in Caller(bot).ask("GET", "/sessions")[1]["sessions"]]
        assert known == ["main"]
    finally:
        bot.close()
        model.close()


def test_the_token_file_is_private_and_made_again() -> None:
    with running(ECHO, full=True) as bot:
        path = bot.home / "api-token"
        old = Caller(bot)
        path.unlink()

        assert old.ask("GET", "/sessions")[0] == 401
        wait_for("a new token", path.exists)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert Caller(bot).ask("GET", "/sessions")[0] == 200
        assert old.token not in bot.log_text()


def test_a_private_daemon_makes_no_local_token() -> None:
    with running(ECHO) as bot:
        assert not (bot.home / "api-token").exists()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ('host = "0.0.0.0"\n', "http.tls_certificate"),
        ('host = "0.0.0.0"\nproxies = ["10.0.0.1"]\n', "fermix tokens create NAME"),
        ('tls_certificate = "/nowhere.pem"\n', "http.tls_key"),
        ('tls_certificate = "/nowhere.pem"\ntls_key = "/nowhere.key"\n', "/nowhere"),
    ],
)
def test_an_address_others_can_reach_needs_more_than_to_be_wished_for(config: str, said: str) -> None:
    model = Model(ECHO)
    bot = Bot(model, full=True)
    try:
        text = (bot.home / "config.toml").read_text().replace("port = 0\n", f"port = 0\n{config}")
        (bot.home / "config.toml").write_text(text)
        bot.start(wait=False)
        process = bot._processes[-1]

        assert process.wait(30) not in (0, 1)
        out = (bot.root / "daemon.out").read_text()
        assert said in out
        assert "Traceback" not in out
    finally:
        bot.close()
        model.close()


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, signed by itself, and its key."""
    paths = folder / "certificate.pem", folder / "key.pem"
    words = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        f"-subj /CN=fermix -addext subjectAltName=IP:127.0.0.1 -out {paths[0]} -keyout {paths[1]}"
    )
    subprocess.run(words.split(), check=True, capture_output=True)
    paths[1].chmod(0o600)
    return paths


def test_a_daemon_serves_https_where_others_reach_it(tmp_path: Path) -> None:
    chain, key = certificate(tmp_path)
    model = Model(ECHO)
    bot = Bot(model, full=True)
    context = ssl.create_default_context(cafile=str(chain))
    try:
        bot.full = False
        bot.start()
        with bot.connect() as connection:
            token = connection.call("tokens.create", {"name": "phone"}, 10.0)["token"]
        bot.close_daemons()
        bot.full = True
        config = f'host = "0.0.0.0"\ntls_certificate = "{chain}"\ntls_key = "{key}"\nport = 0\n'
        text = (bot.home / "config.toml").read_text().replace("port = 0\n", config)
        (bot.home / "config.toml").write_text(text)
        bot.start()

        phone = Caller(bot, token, tls=context)
        phone.address = phone.address.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 (it is what the test is about)
        status, answer = phone.ask("POST", "/message", {"text": "hi"})
        with phone.events({"text": "hi"}) as events:
            last: Any = list(events)[-1]

        assert (status, answer["text"]) == (200, "You said: hi")
        assert last[1] == "done"
        assert bot.status()["https"] is True
        phone.tls = None
        with pytest.raises((OSError, FermixError)):
            phone.ask("GET", "/sessions")

        old = serial(phone.address)
        chain.unlink()
        key.unlink()
        certificate(tmp_path)
        assert serial(phone.address) != old
    finally:
        bot.close()
        model.close()


def serial(address: str) -> bytes | None:
    """The certificate that is shown now."""
    host, _, port = address.partition(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((host, int(port)), timeout=10) as link,
        context.wrap_socket(link) as encrypted,
    ):
        return encrypted.getpeercert(binary_form=True)
