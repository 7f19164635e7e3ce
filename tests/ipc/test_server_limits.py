"""The control socket's server: clients that are slow, greedy or many."""

from __future__ import annotations

from contextlib import suppress

import pytest

from fermix.ipc.server import REQUESTS_PER_CONNECTION
from fermix.tasks import sleep
from tests.gateway.office import until
from tests.ipc.service import code_of, frame


def test_half_a_request_is_refused_after_the_time_the_setting_says(serve) -> None:
    service = serve(request_timeout_s=0.1)
    client = service.client()
    client.socket.sendall(frame("echo")[:-1])

    assert code_of(client.answer()) == "request_timeout"
    assert client.is_hung_up()


def test_dripping_bytes_do_not_put_the_time_off(serve) -> None:
    client = serve(request_timeout_s=0.2).client()
    with pytest.raises(OSError):
        for byte in frame("echo", words="x" * 1000):
            client.socket.sendall(bytes([byte]))
            sleep(0.01)


def test_silent_connection_that_had_its_answer_may_stay(serve) -> None:
    client = serve(request_timeout_s=0.1).client()
    client.ask("echo")
    sleep(0.2)

    assert client.ask("echo")["id"] == 1


def test_connection_that_never_asks_is_hung_up(serve) -> None:
    client = serve(request_timeout_s=0.1).client()

    assert code_of(client.answer()) == "request_timeout"


def test_idle_client_makes_room_for_a_new_one_when_all_places_are_taken(serve) -> None:
    service = serve(connections=4)
    clients = [service.client() for _ in range(4)]
    for client in clients:
        client.ask("echo")
    clients[0].send("wait")
    sleep(0.01)

    assert service.client().ask("echo")["result"]
    assert code_of(clients[1].answer()) == "busy" and clients[1].is_hung_up()
    assert clients[2].ask("echo")["result"]
    service.gate.set()
    assert clients[0].answer()["result"]


def test_new_client_is_told_to_come_back_when_all_others_are_busy(serve) -> None:
    service = serve(connections=4)
    clients = [service.client() for _ in range(4)]
    for client in clients:
        client.send("wait")
    until("all to be served", lambda: service.server.clients == 4)
    sleep(0.01)

    late = service.client()
    assert code_of(late.answer()) == "busy" and late.is_hung_up()
    assert service.server.clients <= 4


def test_many_requests_on_one_connection_are_bounded(serve) -> None:
    service = serve()
    client = service.client()
    for id in range(REQUESTS_PER_CONNECTION + 1):
        client.send("wait", id=id)

    refused = client.answer()
    assert (refused["id"], code_of(refused)) == (REQUESTS_PER_CONNECTION, "busy")
    service.gate.set()
    assert len({client.answer()["id"] for _ in range(REQUESTS_PER_CONNECTION)}) == REQUESTS_PER_CONNECTION


def test_unfinished_requests_of_all_connections_together_are_bounded(serve) -> None:
    service = serve()
    clients = [service.client() for _ in range(4)]
    for client in clients:
        with suppress(BrokenPipeError):  # hung up on before it had sent all
            client.socket.sendall((4 * 1024 * 1024).to_bytes(4) + b"x" * (3 * 1024 * 1024))

    codes = []
    for client in clients:
        client.socket.settimeout(0.3)
        try:
            codes.append(code_of(client.answer()))
        except (TimeoutError, ConnectionError, EOFError):
            codes.append("")
    assert "busy" in codes
    assert service.client().ask("echo")["result"]


def test_client_that_leaves_in_mid_stream_is_forgotten_and_others_go_on(serve) -> None:
    service = serve()
    leaving, staying = service.client(), service.client()
    leaving.send("flood")
    staying.send("wait", words="stays")
    sleep(0.05)
    leaving.socket.close()

    until("it to be forgotten", lambda: service.server.clients == 1)
    service.gate.set()
    assert staying.answer()["result"] == {"words": "stays"}


def test_frame_may_be_as_long_as_the_setting_says(serve) -> None:
    client = serve(frame_limit_bytes=65_536).client()

    assert client.ask("echo", words="x" * 65_000)["result"]
    client.send("echo", words="x" * 66_000)
    assert code_of(client.answer()) == "frame_too_large"
