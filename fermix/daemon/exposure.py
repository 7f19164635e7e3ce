"""Refuses settings with which others could reach the daemon and it could not tell who they are."""

from __future__ import annotations

from fermix.auth.devices import DeviceTokens
from fermix.daemon.reload import Commit, Step
from fermix.daemon.sections import Settings
from fermix.paths import Home
from fermix.web import exposure
from fermix.web.settings import HttpSettings


def check_exposure(home: Home, http: HttpSettings) -> None:
    """Raises: ConfigError with what makes it safe."""
    devices = 0 if exposure.is_loopback(http.host) else len(DeviceTokens(home.tokens).all())
    problem = exposure.problem(http, device_tokens=devices)
    if problem is not None:
        raise problem


def exposure_step(home: Home) -> Step:
    """A reload is held to the same as a start."""

    def prepare(settings: Settings) -> Commit:
        check_exposure(home, settings.http)
        return lambda: None

    return Step(("http",), prepare)
