"""Sign-ins: begun with a browser or a code, renewed once, never lost, and gone when they are signed out."""

from __future__ import annotations

import socket
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gevent
import pytest

from fermix.auth.oauth import login
from fermix.auth.oauth.issuer import Issuer
from fermix.auth.oauth.keeper import SignIns
from fermix.auth.oauth.loopback import Loopback
from fermix.auth.oauth.spec import claims_of
from fermix.auth.oauth.store import SignIn, SignInStore
from fermix.clock import SystemClock
from fermix.errors import (
    Cancelled,
    ConfigError,
    HomeUnsafe,
    IssuerBusy,
    SignInEnded,
    SignInFailed,
    SignInMissing,
)
from fermix.paths import Home
from fermix.providers.vendors.openai_codex import SIGN_IN
from fermix.secret import Secret
from fermix.secrets import Redactor
from fermix.tasks import Cancel, Deadline, ThreadPool

from .issuer import ACCOUNT, MAIL, visit
from .issuer import Issuer as FakeIssuer

NAME = "codex"
ANY_PORT = replace(SIGN_IN, redirect_ports=(0,))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    tmp_path.chmod(0o700)
    return Home(tmp_path)


@pytest.fixture
def fake() -> Iterator[FakeIssuer]:
    with FakeIssuer() as made:
        yield made


@pytest.fixture
def issuer(fake: FakeIssuer) -> Iterator[Issuer]:
    made = Issuer(ANY_PORT.at(fake.url), SystemClock())
    yield made
    made.close()


@pytest.fixture
def redactor() -> Redactor:
    return Redactor()


@pytest.fixture
def open_sign_ins(home: Home, redactor: Redactor) -> Iterator[Callable[[], SignIns]]:
    """Makes one more process's view of the same home."""
    made: list[SignIns] = []
    pool = ThreadPool(4)

    def make() -> SignIns:
        made.append(SignIns(home, clock=SystemClock(), pool=pool, know=redactor.add))
        return made[-1]

    yield make
    for each in made:
        each.stop(1.0)
    pool.stop()


@pytest.fixture
def sign_ins(open_sign_ins) -> SignIns:
    return open_sign_ins()


def signed_in(fake: FakeIssuer, issuer: Issuer, sign_ins: SignIns) -> SignIn:
    """A sign-in whose access token has run out, so that the next use renews it."""
    sign_in = with_code(fake, issuer)
    stale = replace(sign_in, expires_ms=1)
    sign_ins.put(NAME, stale, issuer)
    return stale


def with_code(fake: FakeIssuer, issuer: Issuer) -> SignIn:
    fake.is_agreed = True
    return login.with_code(
        issuer, show=lambda url, code: None, cancel=Cancel(), deadline=Deadline.after(10)
    )


def get(sign_ins: SignIns, issuer: Issuer, **options: Any) -> SignIn:
    defaults: dict[str, Any] = {"cancel": Cancel(), "deadline": Deadline.after(20)}
    return sign_ins.get(NAME, issuer, **(defaults | options))


def refused(error: type[Exception], sign_ins: SignIns, issuer: Issuer, **options: object) -> None:
    with pytest.raises(error):
        get(sign_ins, issuer, **options)


def fetch(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_browser_brings_the_code_and_the_verifier_proves_who_asked(fake, issuer) -> None:
    pages: list[tuple[int, str]] = []

    def browse(url: str) -> None:
        assert url.startswith(f"{fake.url}/oauth/authorize?response_type=code&client_id=app_")
        gevent.spawn(lambda: pages.append(fetch(visit(fake, url))))

    sign_in = login.with_browser(issuer, show=browse, cancel=Cancel(), deadline=Deadline.after(10))

    assert (sign_in.account_id, sign_in.label, sign_in.plan) == (ACCOUNT, MAIL, "plus")
    assert sign_in.expires_ms is not None and sign_in.expires_ms > time.time() * 1000
    gevent.sleep(0)
    assert pages[0][0] == 200 and "signed in" in pages[0][1]


def test_a_code_of_another_sign_in_is_not_taken(fake, issuer) -> None:
    pages = []

    def browse(url: str) -> None:
        pages.append(fetch(visit(fake, url, state="another")))
        gevent.spawn(fetch, visit(fake, url))

    sign_in = login.with_browser(issuer, show=browse, cancel=Cancel(), deadline=Deadline.after(10))

    assert pages[0][0] == 400 and "another sign-in" in pages[0][1]
    assert sign_in.refresh.reveal()


def test_silent_and_foreign_visitors_do_not_hold_up_the_browser() -> None:
    with Loopback((0,), "/auth/callback", state="s") as loopback:
        silent = socket.create_connection(("127.0.0.1", loopback.port))
        base = f"http://127.0.0.1:{loopback.port}"
        assert fetch(f"{base}/favicon.ico")[0] == 404
        rebound = urllib.request.Request(f"{base}/auth/callback?code=x&state=s")
        rebound.add_header("Host", "evil.example")
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(rebound, timeout=10)
        half = socket.create_connection(("127.0.0.1", loopback.port))
        half.sendall(f"GET //[ HTTP/1.1\r\nHost: localhost:{loopback.port}\r\n\r\n".encode())
        half.settimeout(10)
        assert half.recv(12) == b"HTTP/1.1 400"
        half.close()
        gevent.spawn(fetch, f"{base}/auth/callback?code=good&state=s")
        assert loopback.code(Deadline.after(10), Cancel()) == "good"
        silent.close()


def test_a_no_of_the_person_and_a_wait_in_vain_are_told() -> None:
    with Loopback((0,), "/cb", state="s") as loopback:
        gevent.spawn(fetch, f"{loopback.redirect}?error=access_denied&state=s")
        with pytest.raises(SignInFailed, match="access_denied"):
            loopback.code(Deadline.after(10), Cancel())
    with Loopback((0,), "/cb", state="s") as loopback, pytest.raises(SignInFailed, match="in time"):
        loopback.code(Deadline.after(0.05), Cancel())


def test_a_port_in_use_is_passed_over_and_the_last_one_told() -> None:
    with Loopback((0,), "/cb", state="s") as first:
        with Loopback((first.port, 0), "/cb", state="s") as second:
            assert second.port != first.port
        with pytest.raises(SignInFailed, match=str(first.port)) as told:
            Loopback((first.port,), "/cb", state="s")
    assert told.value.hint == "fermix auth login --device"


def test_a_code_is_waited_for_until_its_person_agrees(fake, issuer) -> None:
    shown = []

    def show(url: str, code: str) -> None:
        shown.append((url, code))
        gevent.spawn_later(0.1, setattr, fake, "is_agreed", True)

    sign_in = login.with_code(issuer, show=show, cancel=Cancel(), deadline=Deadline.after(10))

    assert shown == [(f"{fake.url}/codex/device", "ABCD-1234")]
    assert fake.polls > 1 and sign_in.account_id == ACCOUNT


def test_a_code_nobody_types_ends_with_time_or_cancel(fake, issuer) -> None:
    waits = partial(login.with_code, issuer, show=lambda url, code: None)
    with pytest.raises(SignInFailed, match="in time"):
        waits(cancel=Cancel(), deadline=Deadline.after(0.1))
    cancel = Cancel()
    gevent.spawn_later(0.05, cancel.set, "signed out")
    with pytest.raises(Cancelled):
        waits(cancel=cancel, deadline=Deadline.after(10))


def test_tokens_lie_in_a_private_file_and_are_known_to_the_redactor(
    fake, issuer, sign_ins, home, redactor
) -> None:
    sign_ins.put(NAME, with_code(fake, issuer), issuer)

    assert stat.S_IMODE(home.sign_ins.stat().st_mode) == 0o600
    found = get(sign_ins, issuer)
    text = f"{found.access.reveal()} {found.refresh.reveal()}"
    assert text.split()[1] in home.sign_ins.read_text()
    assert redactor.redact(text) == "*** ***"
    assert "refresh-" not in repr(found)


@pytest.mark.parametrize(
    "spoil, error",
    [
        (lambda path: path.chmod(0o644), HomeUnsafe),
        (lambda path: path.write_text('{"version": 1, "sign_ins": {"codex": 3}}'), ConfigError),
        (lambda path: path.write_text("tok-secret {"), ConfigError),
        (lambda path: path.write_text('{"version": 9}'), ConfigError),
    ],
)
def test_a_file_that_is_wide_or_damaged_is_refused(fake, issuer, sign_ins, home, spoil, error) -> None:
    sign_ins.put(NAME, with_code(fake, issuer), issuer)
    spoil(home.sign_ins)
    with pytest.raises(error) as told:
        get(sign_ins, issuer)
    assert "tok-secret" not in str(told.value) and told.value.hint


def test_a_token_that_counts_is_used_without_asking(fake, issuer, sign_ins) -> None:
    sign_ins.put(NAME, with_code(fake, issuer), issuer)
    assert get(sign_ins, issuer).access == get(sign_ins, issuer).access
    assert fake.refreshes == 0


def test_many_who_ask_at_once_renew_once(fake, issuer, open_sign_ins) -> None:
    here, there = open_sign_ins(), open_sign_ins()
    signed_in(fake, issuer, here)
    asking = [gevent.spawn(get, each, issuer) for each in (here, there) for _ in range(10)]
    found = {each.get(timeout=20).access.reveal() for each in asking}
    assert (len(found), fake.refreshes, fake.refused) == (1, 1, 0)


def test_a_refused_token_is_renewed_and_the_new_one_not_again(fake, issuer, sign_ins) -> None:
    sign_ins.put(NAME, with_code(fake, issuer), issuer)
    old = get(sign_ins, issuer).access
    new = get(sign_ins, issuer, refused=old).access
    assert new != old
    assert get(sign_ins, issuer, refused=old).access == new
    assert fake.refreshes == 1


def test_who_stops_waiting_does_not_cut_the_renewal(fake, issuer, sign_ins) -> None:
    signed_in(fake, issuer, sign_ins)
    fake.may_answer.clear()
    cancel = Cancel()
    asking = gevent.spawn(refused, Cancelled, sign_ins, issuer, cancel=cancel)
    assert fake.entered.wait(10)
    cancel.set("stopped by its person")
    asking.get(timeout=5)
    fake.may_answer.set()
    assert get(sign_ins, issuer).expires_ms != 1
    assert (fake.refreshes, fake.refused) == (1, 0)


def test_an_issuer_without_time_keeps_the_sign_in(fake, issuer, sign_ins) -> None:
    signed_in(fake, issuer, sign_ins)
    fake.trouble.statuses = [503, 429]
    for _ in range(2):
        with pytest.raises(IssuerBusy, match="come back later"):
            get(sign_ins, issuer)
    assert get(sign_ins, issuer).refused is None


def test_a_token_that_still_counts_is_used_while_its_issuer_has_no_time(fake, issuer, sign_ins) -> None:
    soon = replace(with_code(fake, issuer), expires_ms=int(time.time() * 1000) + 60_000)
    sign_ins.put(NAME, soon, issuer)
    fake.trouble.statuses = [503, 503]
    assert get(sign_ins, issuer).access == soon.access
    assert get(sign_ins, issuer).access == soon.access
    assert fake.trouble.statuses == [503]  # not asked at each use


def test_a_revoked_sign_in_is_told_apart_and_not_asked_again(fake, issuer, sign_ins, home) -> None:
    stale = signed_in(fake, issuer, sign_ins)
    fake.forget_all()
    with pytest.raises(SignInEnded, match="already used") as told:
        get(sign_ins, issuer)
    with pytest.raises(SignInEnded):
        get(sign_ins, issuer)
    assert told.value.hint == "fermix auth login codex"
    assert fake.refused == 1
    assert stale.refresh.reveal() not in home.sign_ins.read_text()
    assert sign_ins.all()[NAME].refused


def test_a_logout_during_a_renewal_stays_and_what_came_is_revoked(fake, issuer, open_sign_ins) -> None:
    here, there = open_sign_ins(), open_sign_ins()
    signed_in(fake, issuer, here)
    fake.may_answer.clear()
    asking = gevent.spawn(refused, SignInMissing, here, issuer)
    assert fake.entered.wait(10)
    gone, was_told = there.remove(NAME, issuer)
    fake.may_answer.set()
    asking.get(timeout=10)
    assert gone is not None and was_told
    assert there.all() == {} and len(fake.revoked) == 2
    with pytest.raises(SignInMissing):
        get(here, issuer)


def test_a_new_sign_in_during_a_renewal_wins(fake, issuer, sign_ins) -> None:
    signed_in(fake, issuer, sign_ins)
    fake.may_answer.clear()
    asking = gevent.spawn(get, sign_ins, issuer)
    assert fake.entered.wait(10)
    newer = with_code(fake, issuer)
    sign_ins.put(NAME, newer, issuer)
    fake.may_answer.set()
    assert asking.get(timeout=10).id == newer.id
    assert get(sign_ins, issuer).access == newer.access


def test_what_the_disk_refuses_is_kept_in_memory_and_stored_later(
    fake, issuer, sign_ins, open_sign_ins, home
) -> None:
    signed_in(fake, issuer, sign_ins)
    fake.may_answer.clear()
    asking = gevent.spawn(get, sign_ins, issuer)
    assert fake.entered.wait(10)
    lock = next(home.root.glob(".auth-*.lock"))
    elsewhere = home.root.with_name("elsewhere")
    home.root.rename(elsewhere)  # the home is gone for a while
    fake.may_answer.set()
    renewed = asking.get(timeout=10)
    elsewhere.rename(home.root)
    assert lock.exists()
    assert get(sign_ins, issuer).access == renewed.access
    after = get(sign_ins, issuer, refused=renewed.access)
    assert get(open_sign_ins(), issuer).access == after.access
    assert fake.refused == 0


def test_tokens_are_sent_to_nobody_but_who_gave_them(fake, issuer, sign_ins) -> None:
    signed_in(fake, issuer, sign_ins)
    with FakeIssuer() as other:
        elsewhere = Issuer(SIGN_IN.at(other.url), SystemClock())
        with pytest.raises(SignInMissing, match="settings name"):
            get(sign_ins, elsewhere)
        assert elsewhere.revoke(sign_ins.all()[NAME]) is False
        assert other.revoked == [] and other.refused == 0


@pytest.mark.parametrize("text", ["", "a.b", "a.b.c", "a.!!!.c", "e30.W10.x", "a.é.c"])
def test_what_is_no_token_has_no_claims(text: str) -> None:
    assert claims_of(text) == {}


def test_two_views_of_the_file_lose_no_sign_in(home: Home) -> None:
    one, two = SignInStore(home.sign_ins), SignInStore(home.sign_ins)
    made = {
        name: SignIn(
            id=name,
            issuer="i",
            access=Secret(f"token-of-{name}"),
            expires_ms=None,
            signed_in_ms=1,
            renewed_ms=1,
        )
        for name in ("a", "b", "c")
    }
    one.put("a", made["a"])
    two.put("b", made["b"])
    one.put("c", made["c"])
    assert dict(two.all()) == dict(one.all()) == made
    assert two.remove("b") == made["b"] and two.remove("b") is None
    assert set(one.all()) == {"a", "c"}


def test_a_token_revoked_by_a_logout_while_it_is_sent_is_a_logout(fake, issuer, sign_ins, home) -> None:
    stale = signed_in(fake, issuer, sign_ins)
    issuer.revoke(stale)
    fake.may_answer.clear()
    asking = gevent.spawn(refused, SignInMissing, sign_ins, issuer)
    assert fake.entered.wait(10)
    SignInStore(home.sign_ins).remove(NAME)
    fake.may_answer.set()
    asking.get(timeout=10)
    assert fake.refused == 0
