"""Who is let in: the right name, no page of another site, a token in its one place."""

from __future__ import annotations

import json
import socket
from contextlib import nullcontext
from pathlib import Path

import pytest

from fermix.auth.token import new_token
from fermix.web.admission import check_way
from fermix.web.link import Link
from fermix.web.peers import peer_of
from fermix.web.refusals import Refused
from fermix.web.settings import HttpSettings


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:4030", "127.0.0.1:1", "[::1]:4030", "LOCALHOST", "fermix.example"]
)
def test_known_names_of_this_machine_are_served(service, host):
    service.set(names=("Fermix.example",))

    assert service.send("GET", "/health/live", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "evil.example:4030",
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost/evil.example",
        "localhost?evil.example",
        "localhost#evil.example",
        "local\thost",
        "localhost:evil",
        "localhost:99999",
        "[",
        "",
        "a" * 5000,
    ],
)
def test_a_page_that_rebinds_its_name_to_loopback_is_refused(service, host):
    answer = service.send("GET", "/health", headers={"Host": host})

    assert (answer.status, answer.code) == (403, "host_refused")
    assert len(answer.body) < 1000


def test_the_own_address_of_a_listener_for_both_kinds_is_told_as_clients_write_it():
    with (
        socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener,
        socket.create_connection(("127.0.0.1", listener.getsockname()[1])),
    ):
        accepted, _ = listener.accept()
        with accepted:
            assert Link(accepted).own_address() == "127.0.0.1"


def test_a_name_is_served_as_soon_as_the_settings_have_it(service):
    headers = {"Host": "fermix.example"}
    assert service.send("GET", "/health/live", headers=headers).status == 403

    service.set(names=("fermix.example",))

    assert service.send("GET", "/health/live", headers=headers).status == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "",
        "http://localhost:3000",
        "https://localhost:4030",
        "http://127.0.0.1",
        "http://evil.example@localhost",
        "http://localhost/page",
        "moz-extension://localhost",
        "//localhost",
        "http://local\thost",
    ],
)
def test_a_page_of_another_site_is_refused(service, origin):
    headers = {"Host": "localhost", "Origin": origin}

    answer = service.send("POST", "/message", {"text": "hi"}, headers=headers)

    assert (answer.status, answer.code) == (403, "origin_refused")
    assert service.desk.words == []


def test_a_page_of_this_machine_is_served(service):
    headers = {"Host": "localhost:4030", "Origin": "http://localhost:4030"}

    assert service.send("GET", "/health", headers=headers).status == 200


@pytest.mark.parametrize("host", ["fermix.example", "127.0.0.1:4030"])
def test_a_page_behind_a_proxy_is_served_under_a_name_from_the_settings(service, host):
    service.set(names=("fermix.example",))
    headers = {"Host": host, "Origin": "https://fermix.example"}

    assert service.send("GET", "/health", headers=headers).status == 200


def test_a_name_that_a_shell_would_read_is_not_put_into_a_hint(service):
    answer = service.send("GET", "/health", headers={"Host": "x';reboot;'"})

    assert answer.status == 403
    assert json.loads(answer.body)["error"]["hint"] is None


@pytest.mark.parametrize("given", ["{token}", "Bearer\t{token}", "Token {token}"])
def test_a_token_sent_in_another_way_is_not_said_again(service, given):
    token = new_token().reveal()

    answer = service.send(
        "GET", "/sessions", token=None, headers={"Authorization": given.format(token=token)}
    )

    assert answer.status == 401
    assert token[:12].encode() not in answer.body


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/message"),
        ("GET", "/turns/x"),
        ("GET", "/turns/x/events"),
        ("POST", "/turns/x/cancel"),
        ("GET", "/sessions"),
        ("GET", "/sessions/x"),
        ("PATCH", "/sessions/x"),
        ("DELETE", "/sessions/x"),
        ("GET", "/sessions/x/messages"),
        ("GET", "/sessions/x/export"),
        ("POST", "/sessions/x/cancel"),
        ("POST", "/uploads"),
    ],
)
def test_nothing_but_health_is_there_without_a_token(service, method, path):
    answer = service.send(method, path, {"text": "hi"}, token=None)

    assert (answer.status, answer.code) == (401, "token_missing")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert service.desk.words == []


def test_every_route_but_a_known_few_needs_a_token():
    from fermix.web.table import ROUTES

    assert {route.path for route in ROUTES if not route.needs_token} == {
        "/health/live",
        "/health/ready",
        "/health",
    }


@pytest.mark.parametrize("given", ["Bearer wrong", "Bearer ", "Basic dTpw", "fx_", "Bearer \x80"])
def test_a_wrong_token_is_refused_also_where_none_is_needed(service, given):
    for path in ("/sessions", "/health"):
        answer = service.send("GET", path, token=None, headers={"Authorization": given})

        assert (answer.status, answer.code) == (401, "token_wrong")


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        ("/sessions?token=abc", {}, "token_in_url"),
        ("/sessions?limit=1&Access_Token=abc", {}, "token_in_url"),
        ("/sessions?limit={token}", {}, "token_in_url"),
        ("/{token}", {}, "token_in_url"),
        ("/sessions", {"Cookie": "a=b; token={token}"}, "token_in_cookie"),
    ],
)
def test_a_token_anywhere_but_in_its_header_is_refused(service, path, headers, code):
    headers = {name: value.format(token=service.token) for name, value in headers.items()}

    answer = service.send("GET", path.format(token=service.token), headers=headers)

    assert (answer.status, answer.code) == (400, code)
    assert service.token not in answer.body.decode()


def test_cookies_of_other_programs_on_this_machine_do_no_harm(service):
    assert service.send("GET", "/sessions", headers={"Cookie": "session=abc; theme=dark"}).status == 200


def test_whoever_tries_many_tokens_is_told_to_wait_and_the_owner_is_not_locked_out(service):
    service.set(failed_tokens_per_minute=3)
    answers = [service.send("GET", "/sessions", token=f"wrong{number}") for number in range(5)]

    assert [answer.status for answer in answers] == [401, 401, 401, 429, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert service.send("GET", "/sessions").status == 200


def test_a_device_token_opens_and_ends_with_its_revocation(service):
    token = service.daemon.tokens_.create("laptop").reveal()
    assert service.send("GET", "/sessions", token=token).status == 200

    service.daemon.tokens_.revoke("laptop")

    assert service.send("GET", "/sessions", token=token).code == "token_wrong"


def test_the_local_token_does_not_count_through_a_proxy(service):
    device = service.daemon.tokens_.create("phone").reveal()
    through = {"X-Forwarded-For": "198.51.100.9"}

    assert service.send("GET", "/sessions", headers=through).code == "token_wrong"
    assert service.send("GET", "/sessions", headers=through, token=device).status == 200

    service.set(proxies=("127.0.0.1",))

    assert service.send("GET", "/sessions").code == "token_wrong"
    assert service.send("GET", "/sessions", headers=through, token=device).status == 200


def test_wrong_tokens_through_a_named_proxy_count_for_each_client(service):
    service.set(proxies=("127.0.0.0/8",), failed_tokens_per_minute=1)

    def status(client: str) -> int:
        headers = {"X-Forwarded-For": f"203.0.113.1, {client}"}
        return service.send("GET", "/sessions", token="wrong", headers=headers).status

    assert [status("198.51.100.1"), status("198.51.100.1"), status("198.51.100.2")] == [401, 429, 401]


@pytest.mark.parametrize(
    ("remote", "forwarded", "proxies", "address", "is_local"),
    [
        ("127.0.0.1", None, (), "127.0.0.1", True),
        ("::1", None, (), "::1", True),
        ("::ffff:127.0.0.1", None, (), "127.0.0.1", True),
        ("192.0.2.7", None, (), "192.0.2.7", False),
        ("192.0.2.7", "127.0.0.1", (), "192.0.2.7", False),
        ("127.0.0.1", "127.0.0.1", (), "127.0.0.1", False),
        ("127.0.0.1", "127.0.0.1", ("127.0.0.1",), "127.0.0.1", False),
        ("10.0.0.2", "6.6.6.6, 192.0.2.7, 10.0.0.3", ("10.0.0.0/24",), "192.0.2.7", False),
        ("10.0.0.2", "garbage", ("10.0.0.2",), "10.0.0.2", False),
        ("10.0.0.2", None, ("10.0.0.2",), "10.0.0.2", False),
        ("2001:db8::5", None, (), "2001:db8::/64", False),
        ("nonsense", None, (), "nonsense", False),
    ],
)
def test_forwarding_is_believed_from_named_proxies_alone(remote, forwarded, proxies, address, is_local):
    headers = {} if forwarded is None else {"x-forwarded-for": forwarded}

    peer = peer_of(remote, headers, proxies)

    assert (peer.address, peer.is_local) == (address, is_local)


@pytest.mark.parametrize(
    ("remote", "proxies", "certificate", "is_served"),
    [
        ("127.0.0.1", (), None, True),
        ("192.0.2.7", (), None, False),
        ("192.0.2.7", ("192.0.2.0/24",), None, True),
        ("192.0.2.7", ("10.0.0.1",), None, False),
        ("192.0.2.7", (), Path("/certificate.pem"), True),
    ],
)
def test_no_token_is_asked_for_over_an_unencrypted_network(remote, proxies, certificate, is_served):
    settings = HttpSettings(host="192.0.2.1", proxies=proxies, tls_certificate=certificate)
    peer = peer_of(remote, {}, proxies)

    with nullcontext() if is_served else pytest.raises(Refused, match="Without HTTPS"):
        check_way(peer, settings)


def test_errors_never_show_a_token_that_was_used(service):
    service.send("GET", "/sessions")

    assert service.daemon.redactor.redact(f"x {service.token} y") == "x *** y"


def test_a_token_of_the_right_shape_that_is_nobodys_is_wrong(service):
    assert service.send("GET", "/sessions", token=new_token().reveal()).status == 401
