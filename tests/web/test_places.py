"""Whose place a newcomer takes."""

from __future__ import annotations

import socket

import pytest

from fermix.web.places import Places


@pytest.fixture
def clients():
    pairs = [socket.socketpair() for _ in range(4)]
    yield [ours for ours, _ in pairs]
    for pair in pairs:
        for each in pair:
            each.close()


def is_hung_up_on(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False


def test_one_that_begins_to_wait_when_all_places_are_taken_makes_the_longest_waiting_go(clients):
    places = Places(lambda: 4)
    for _ in clients:
        places.take()

    with places.awaiting(clients[0]), places.awaiting(clients[1]), places.awaiting(clients[2]):
        assert [is_hung_up_on(each) for each in clients] == [True, False, False, False]


def test_a_place_is_given_back_once_however_often_its_client_is_waited_for(clients):
    places = Places(lambda: 4)
    for _ in clients:
        places.take()
    with places.awaiting(clients[0]), places.awaiting(clients[1]):
        pass
    with places.awaiting(clients[0]):
        pass
    places.give_back(clients[0])

    places.take()  # as many as before
    with places.awaiting(clients[1]):
        places.take()
        assert is_hung_up_on(clients[1])
