"""Methods about the tokens of devices; only a person may mint one or take it back."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fermix.auth.tokens import Tokens
from fermix.daemon.methods.access import NoParams, persons
from fermix.errors import TokenUnknown
from fermix.ipc.server import Call, Method


class TokenParams(msgspec.Struct):
    """`tokens.create` and `tokens.revoke`: the device's name."""

    name: str


class TokenMethods:
    """Answers them from the daemon's tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def methods(self) -> dict[str, Method]:
        """Method name → what it takes and what answers it."""
        return {
            "tokens.create": persons(TokenParams, self._create),
            "tokens.list": persons(NoParams, self._list),
            "tokens.revoke": persons(TokenParams, self._revoke),
        }

    def _create(self, params: TokenParams, call: Call) -> Mapping[str, object]:
        return {"name": params.name, "token": self._tokens.create(params.name).reveal()}

    def _list(self, params: NoParams, call: Call) -> Mapping[str, object]:
        return {
            "tokens": [
                {"name": each.name, "created_ms": each.created_ms, "last_used_ms": each.last_used_ms}
                for each in self._tokens.devices()
            ]
        }

    def _revoke(self, params: TokenParams, call: Call) -> Mapping[str, object]:
        if not self._tokens.revoke(params.name):
            raise TokenUnknown(
                f"No token named {params.name[:80]!r}. Available: {self._names()}.",
                hint="fermix tokens list",
            )
        return {"revoked": params.name}

    def _names(self) -> str:
        return ", ".join(each.name for each in self._tokens.devices()) or "none"
