"""Tokens: whose one is, what is kept of it, and that none is lost or outlives its revocation."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import gevent
import pytest

from fermix.auth.devices import MOST, Device, DeviceTokens
from fermix.auth.token import SHAPE, digest_of
from fermix.auth.tokens import Tokens
from fermix.clock import SystemClock
from fermix.errors import ConfigError, HomeUnsafe, OwnerError, UsageError
from fermix.paths import Home
from fermix.secret import Secret
from fermix.secrets import Redactor
from fermix.tasks import ThreadPool


@pytest.fixture
def home(tmp_path: Path) -> Home:
    tmp_path.chmod(0o700)
    return Home(tmp_path)


@pytest.fixture
def open_tokens(home: Home) -> Iterator[Callable[[], Tokens]]:
    """Makes one more process's view of the same home."""
    made: list[Tokens] = []
    pool = ThreadPool(2)

    def make(know: Callable[[Secret], None] = lambda secret: None) -> Tokens:
        made.append(Tokens(home, clock=SystemClock(), pool=pool, know=know))
        return made[-1]

    yield make
    for each in made:
        each.stop(1.0)
    pool.stop()


@pytest.fixture
def tokens(open_tokens) -> Tokens:
    return open_tokens()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def until(is_so: Callable[[], bool]) -> None:
    with gevent.Timeout(10, AssertionError("it did not happen in time")):
        while not is_so():
            gevent.sleep(0.005)


def test_the_local_token_is_made_once_private_and_random(home, tokens):
    tokens.prepare()
    first = home.api_token.read_text()
    tokens.prepare()

    assert SHAPE.fullmatch(first.strip())
    assert home.api_token.read_text() == first
    assert mode(home.api_token) == 0o600
    assert [path.name for path in home.root.iterdir()] == ["api-token"]


def test_the_local_token_counts_for_local_programs_alone(home, tokens):
    tokens.prepare()
    token = home.api_token.read_text().strip()

    grant = tokens.find(token, is_local=True)

    assert grant is not None
    assert grant.name == "api-token"
    assert tokens.find(token, is_local=False) is None


def test_a_removed_local_token_counts_no_more_and_a_new_one_is_made(home, tokens):
    tokens.prepare()
    old = home.api_token.read_text().strip()
    grant = tokens.find(old, is_local=True)
    home.api_token.unlink()

    assert tokens.find(old, is_local=True) is None
    assert not tokens.counts(grant)
    until(home.api_token.exists)
    new = home.api_token.read_text().strip()
    assert new != old
    assert tokens.find(new, is_local=True) is not None


@pytest.mark.parametrize("bits", [0o604, 0o640, 0o660, 0o602])
def test_a_local_token_that_others_can_reach_does_not_count(home, tokens, caplog, bits):
    tokens.prepare()
    token = home.api_token.read_text().strip()

    home.api_token.chmod(bits)

    assert tokens.find(token, is_local=True) is None
    assert f"mode {bits:04o}" in caplog.text
    home.api_token.chmod(0o600)
    assert tokens.find(token, is_local=True) is not None


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 46, b"fx_" + b"a" * 500, b"a" * 2_000_000])
def test_a_local_token_that_is_none_does_not_count(home, tokens, caplog, content):
    home.api_token.write_bytes(content)
    home.api_token.chmod(0o600)

    tokens.prepare()

    assert tokens.find(content.decode("latin-1").strip(), is_local=True) is None
    assert "api-token" in caplog.text


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: os.mkfifo(path, 0o600)])
def test_what_is_no_file_where_the_local_token_belongs_harms_nothing(home, tokens, make):
    make(home.api_token)

    tokens.prepare()

    assert tokens.find("x", is_local=True) is None


def test_only_the_hash_of_a_device_token_is_kept(home, tokens):
    token = tokens.create("laptop").reveal()

    text = home.tokens.read_text()
    assert token not in text
    assert token.removeprefix("fx_") not in text
    assert hashlib.sha256(token.encode()).hexdigest() in text
    assert mode(home.tokens) == 0o600
    assert tokens.find(token, is_local=False).name == "laptop"


def test_a_revoked_token_counts_no_more_in_any_process(open_tokens):
    here, there = open_tokens(), open_tokens()
    token = here.create("laptop").reveal()
    grant = there.find(token, is_local=False)
    assert there.counts(grant)

    assert here.revoke("laptop")

    for each in (here, there):
        assert each.find(token, is_local=False) is None
        assert not each.counts(grant)
    assert not here.revoke("laptop")


def test_a_token_under_the_name_of_a_revoked_one_is_another(tokens):
    old = tokens.create("laptop").reveal()
    grant = tokens.find(old, is_local=False)
    tokens.revoke("laptop")

    new = tokens.create("laptop").reveal()

    assert tokens.find(old, is_local=False) is None
    assert not tokens.counts(grant)
    assert tokens.find(new, is_local=False) is not None


@pytest.mark.parametrize("name", ["", "a b", "../x", ".x", "-x", "a" * 65, "ä", "a\n", "a=b", '"'])
def test_a_name_that_is_none_is_refused(tokens, name):
    with pytest.raises(UsageError, match="not a token's name"):
        tokens.create(name)


def test_a_name_is_given_once(tokens):
    tokens.create("laptop")

    with pytest.raises(UsageError, match="already"):
        tokens.create("laptop")


def test_names_that_toml_must_quote_come_back(open_tokens):
    names = ["a.b", "1", "true", "x-y_z", "A"]
    for name in names:
        open_tokens().create(name)

    assert [each.name for each in open_tokens().devices()] == sorted(names)


def test_there_are_not_too_many(home, tokens):
    devices = DeviceTokens(home.tokens)
    for number in range(MOST):
        devices.add(Device(name=f"d{number}", digest=bytes([number % 256]) * 32, created_ms=1))

    with pytest.raises(UsageError, match="the most there may be"):
        tokens.create("one-more")


def test_when_a_token_was_used_is_noted(open_tokens):
    tokens = open_tokens()
    token = tokens.create("laptop").reveal()
    assert tokens.devices()[0].last_used_ms is None

    tokens.find(token, is_local=False)

    assert tokens.devices()[0].last_used_ms is not None
    until(lambda: open_tokens().devices()[0].last_used_ms is not None)


def test_noting_a_use_brings_no_revoked_token_back(home):
    devices = DeviceTokens(home.tokens)
    devices.add(Device(name="a", digest=b"a" * 32, created_ms=1))
    devices.add(Device(name="b", digest=b"b" * 32, created_ms=1))
    devices.remove("a")

    devices.note_use({b"a" * 32: 5, b"b" * 32: 6})

    assert [(each.name, each.last_used_ms) for each in devices.all()] == [("b", 6)]


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        b"[tokens",
        b"tokens = 1",
        b'[tokens.a]\nsha256 = "zz"\ncreated_ms = 1\n',
        b'[tokens.a]\nsha256 = "00"\ncreated_ms = 1\n',
        b"[tokens.a]\ncreated_ms = 1\n",
        b"a" * 2_000_000,
    ],
)
def test_a_damaged_file_lets_nobody_in_and_is_not_written_over(home, tokens, content, caplog):
    home.tokens.write_bytes(content)
    home.tokens.chmod(0o600)

    assert tokens.find("x", is_local=False) is None
    with pytest.raises(ConfigError, match=r"tokens\.toml"):
        tokens.create("laptop")
    assert home.tokens.read_bytes() == content
    assert "tokens.toml" in caplog.text


def test_a_file_others_can_write_lets_nobody_in(home, tokens):
    token = tokens.create("laptop").reveal()
    home.tokens.chmod(0o666)

    assert tokens.find(token, is_local=False) is None
    with pytest.raises(HomeUnsafe, match="0666"):
        tokens.devices()


def test_the_redactor_knows_every_token_it_has_seen(home, open_tokens):
    redactor = Redactor()
    tokens = open_tokens(redactor.add)
    tokens.prepare()
    local = home.api_token.read_text().strip()
    device = tokens.create("laptop").reveal()
    elsewhere = open_tokens().create("phone").reveal()
    tokens.find(elsewhere, is_local=False)

    assert redactor.redact(f"{local} {device} {elsewhere}") == "*** *** ***"


def test_two_files_in_trouble_are_told_once_each(home, tokens, caplog):
    home.api_token.write_text("none")
    home.tokens.write_text("[broken")
    for path in (home.api_token, home.tokens):
        path.chmod(0o600)

    for _ in range(3):
        assert tokens.find("fx_wrong", is_local=True) is None

    assert [record.message.count(str(home.root)) > 0 for record in caplog.records] == [True, True]


def test_a_home_that_is_gone_is_told(tmp_path, caplog):
    home, pool = Home(tmp_path / "gone"), ThreadPool(1)
    tokens = Tokens(home, clock=SystemClock(), pool=pool, know=lambda secret: None)

    tokens.prepare()
    with pytest.raises(OwnerError, match=r"tokens\.toml"):
        tokens.create("laptop")

    assert "Cannot make" in caplog.text
    assert tokens.find("x", is_local=True) is None
    tokens.stop(1.0)
    pool.stop()


def test_many_at_once_are_all_kept(open_tokens):
    tokens = open_tokens()
    with gevent.Timeout(30):
        gevent.joinall(
            [gevent.spawn(tokens.create, f"d{number}") for number in range(30)], raise_error=True
        )

    assert len(open_tokens().devices()) == 30


def test_a_look_that_finds_the_file_unchanged_does_not_read_it(home, tokens, monkeypatch):
    tokens.create("laptop")
    tokens.devices()
    reads = []
    parse = tokens._devices._kept._parse
    tokens._devices._kept._parse = lambda raw: reads.append(1) or parse(raw)

    for _ in range(100):
        tokens.find("wrong", is_local=False)

    assert reads == []


WRITER = """
import sys
from pathlib import Path
from fermix.auth.devices import Device, DeviceTokens
devices = DeviceTokens(Path(sys.argv[1]))
first = len(devices.all())
for number in range(first, first + 10_000):
    devices.add(Device(name=f"d{number}", digest=bytes(31) + bytes([number % 256]), created_ms=number))
    print(number, flush=True)
    if number % 40 == 39:
        for old in range(number - 39, number + 1):
            devices.remove(f"d{old}")
        print("-", flush=True)
"""


@pytest.mark.slow
def test_a_killed_writer_loses_no_token_that_was_made(home):
    for round_ in range(15):
        for leftover in home.root.glob(".tokens*"):
            leftover.unlink()
        home.tokens.unlink(missing_ok=True)
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(home.tokens)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        told = [writer.stdout.readline().strip() for _ in range(3 + round_)]
        os.kill(writer.pid, signal.SIGKILL)
        told += writer.stdout.read().split()
        writer.wait(10)
        writer.stdout.close()

        kept = {each.name for each in DeviceTokens(home.tokens).all()}

        after = told[len(told) - 1 - told[::-1].index("-") + 1 :] if "-" in told else told
        if after:
            assert {f"d{number}" for number in after} <= kept


def test_a_digest_is_plain_sha256():
    assert digest_of("abc") == hashlib.sha256(b"abc").digest()
