"""A client of the control socket's methods, on a gateway with a scripted model."""

from __future__ import annotations

import base64
from functools import partial
from pathlib import Path

import msgspec

from fermix.daemon.blobs import Blobs
from fermix.daemon.control import table_of
from fermix.daemon.desk import Desk
from fermix.daemon.methods.daemon import DaemonMethods
from fermix.daemon.methods.sessions import SessionMethods
from fermix.daemon.methods.turns import TurnMethods
from fermix.daemon.reload import Outcome
from fermix.daemon.removals import Removals
from fermix.gateway.erase import Eraser
from fermix.ids import new_id
from fermix.ipc.server import Call, Peer
from fermix.paths import Home
from fermix.tasks import ThreadPool
from fermix.trust import Standing
from tests.gateway.office import Office


class Client:
    """The methods, called as the server calls them."""

    def __init__(self, root: Path, *script: object, **settings: object) -> None:
        self.home = Home(root)
        self.office = Office(root / "memory.db", *script, **settings)
        self.pool = ThreadPool(2)
        self.stops: list[bool] = []
        office = self.office
        self.eraser = Eraser(
            office.db,
            queue=office.gateway.queue,
            turns=office.turns,
            inbox=office.inbox,
            files=Removals(self.home, self.pool),
            now_ms=office.clock.now_ms,
        )
        desk = Desk(
            gateway=office.gateway,
            watch=office.watch,
            replay=office.replay,
            conversations=office.conversations,
            blobs=Blobs(self.home, clock=office.clock, pool=self.pool),
            confirm=partial(office.outbox.confirm, channel="local"),
            erase=self.eraser.erase,
            check_pin=lambda pin: None,
            clock=office.clock,
        )
        daemon = DaemonMethods(
            status=lambda: {"state": "ready"},
            stop=lambda only_private: self.stops.append(only_private) or True,
            reload=lambda: Outcome((), ()),
        )
        self.methods = table_of((daemon, TurnMethods(desk), SessionMethods(desk)))
        self.events: list[dict] = []

    def ask(self, method: str, *, standing: Standing | None = None, **params: object) -> dict:
        """A method's result; what it sends on the way goes to `events`."""
        chosen = self.methods[method]
        typed = msgspec.convert(params, chosen.params)
        self.events = []
        made = Call(Peer(1, 0, standing), lambda message: self.events.append(message["event"]), 1)
        return dict(chosen.run(typed, made))

    def say(self, text: str = "hello", **params: object) -> dict:
        return self.ask("message", **{"text": text, "client_id": fresh(), **params})

    def upload(self, *pieces: bytes) -> str:
        blob_id = None
        for piece in pieces:
            blob_id = self.ask("blob", data=base64.b64encode(piece).decode(), blob_id=blob_id)["blob_id"]
        return blob_id

    def close(self) -> None:
        self.office.crash()
        self.pool.stop()


def fresh() -> str:
    return new_id(1)
