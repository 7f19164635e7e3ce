"""Everything one start of the daemon has settled before any process is forked."""

from __future__ import annotations

import _socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gevent import socket

from fermix.daemon.exposure import exposure_step
from fermix.daemon.listeners import ControlListener, HttpListener
from fermix.daemon.mode import Mode
from fermix.daemon.places import Places
from fermix.daemon.reload import LiveSettings, Outcome, Step
from fermix.daemon.sections import Settings
from fermix.paths import Home
from fermix.telemetry.logs import LogFile
from fermix.web.port import DaemonControl


class RuntimePort(DaemonControl, Protocol):
    """What the worker runs; `daemon.app.Runtime` in the real daemon, a stub in tests."""

    def start(self) -> None:
        """Build and start everything; returns when messages are taken in.

        Raises: FermixError when the owner must repair something; the daemon then ends and says so.
        """
        ...

    def wait(self, timeout_s: float) -> bool:
        """Whether it ended by itself within `timeout_s`; raises what made it fail. The worker is then
        replaced."""
        ...

    def drain(self, timeout_s: float) -> None:
        """Take in nothing more, let running turns finish, hand the rest back to the inbox."""
        ...

    def stop(self) -> None:
        """End every part; also after a `start` that failed or was cut short."""
        ...

    def reload(self) -> Outcome:
        """Take up what config.toml says now.

        Raises: FermixError when that cannot work; then nothing has changed.
        """
        ...

    def ripcord(self) -> None:
        """Stop everything that acts on the world, at once."""
        ...


@dataclass(frozen=True, slots=True)
class Placement:
    """What one worker's runtime is given to live with."""

    live: LiveSettings
    """Replaced by the runtime's reload; the worker around it goes by them too."""
    home: Home
    control: socket.socket
    """The listening control socket."""
    http: str | None
    """Address HTTP is served on, as `127.0.0.1:4030`; None when it is off."""
    mode: Mode
    environment: Mapping[str, str]
    steps: Sequence[Step] = ()
    """What the worker around the runtime must do at a reload."""
    on_reload: Callable[[], None] = lambda: None
    """Has the arbiter take up the settings too."""


MakeRuntime = Callable[[Placement], RuntimePort]
"""How a worker builds its runtime."""


@dataclass(slots=True)
class Launch:
    """What arbiter and worker share; the worker has the copy that the fork made."""

    home: Home
    mode: Mode
    environment: Mapping[str, str]
    live: LiveSettings
    """Arbiter and worker each have their own since the fork, and each reload them from the file."""
    logs: LogFile
    control: ControlListener
    http: HttpListener | None
    """None when HTTP is off, as in private mode."""
    make_runtime: MakeRuntime
    places: Places

    @property
    def settings(self) -> Settings:
        """Those that count now."""
        return self.live.now

    def exposure_steps(self) -> Sequence[Step]:
        """What keeps a reload from opening the daemon to whoever reaches it."""
        return (exposure_step(self.home),) if self.http is not None else ()

    def placement(self, *, steps: Sequence[Step] = (), on_reload: Callable[[], None]) -> Placement:
        """For the worker only: the control listener becomes a gevent socket of its own descriptor."""
        fd = _socket.dup(self.control.sock.fileno())
        control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=fd)
        address = self.http.address if self.http is not None else None
        return Placement(
            self.live, self.home, control, address, self.mode, self.environment, steps, on_reload
        )
