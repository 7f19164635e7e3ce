"""Methods about sign-ins at vendors; only a person signs in or out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec

from fermix.clock import Clock
from fermix.daemon.methods.access import NoParams, persons
from fermix.errors import UsageError
from fermix.ipc.server import Call, Method
from fermix.providers.settings import NamedProviderSettings
from fermix.tasks import Cancel, Deadline

if TYPE_CHECKING:
    from fermix.auth.oauth.issuer import Issuer
    from fermix.auth.oauth.keeper import SignIns
    from fermix.auth.oauth.store import SignIn

Name = Annotated[str, msgspec.Meta(max_length=200)]


class LoginParams(msgspec.Struct):
    """`auth.login`: which provider, and whether with a code instead of a browser on this machine."""

    name: Name
    device: bool = False


class LogoutParams(msgspec.Struct):
    """`auth.logout`: which provider."""

    name: Name


class AuthMethods:
    """Answers them from the home's sign-ins. What signs in is imported when somebody does."""

    def __init__(
        self,
        *,
        sign_ins: Callable[[], SignIns],
        providers: Callable[[], Mapping[str, NamedProviderSettings]],
        on_login: Callable[[], None],
        clock: Clock,
    ) -> None:
        """`providers` gives the tables in force; `on_login` is called when somebody has signed in."""
        self._sign_ins = sign_ins
        self._providers = providers
        self._on_login = on_login
        self._clock = clock
        self._logins: dict[str, Cancel] = {}

    def methods(self) -> dict[str, Method]:
        """Method name → what it takes and what answers it."""
        return {
            "auth.login": persons(LoginParams, self._login),
            "auth.status": persons(NoParams, self._status),
            "auth.logout": persons(LogoutParams, self._logout),
        }

    def _login(self, params: LoginParams, call: Call) -> Mapping[str, object]:
        """Sends `open` or `code` on the way; ends when the client hangs up, and nothing is left then."""
        from fermix.auth.oauth import login  # lazy, with all that it needs

        issuer = self._issuer(params.name)
        self._end_login(params.name, "another sign-in was begun")
        cancel = self._logins[params.name] = Cancel()
        deadline = Deadline.after(login.LOGIN_S)
        try:
            if params.device:
                sign_in = login.with_code(
                    issuer,
                    show=lambda url, code: call.event(1, "code", {"url": url, "code": code}),
                    cancel=cancel,
                    deadline=deadline,
                )
            else:
                sign_in = login.with_browser(
                    issuer,
                    show=lambda url: call.event(1, "open", {"url": url}),
                    cancel=cancel,
                    deadline=deadline,
                )
            cancel.check()
            self._sign_ins().put(params.name, sign_in, issuer)
        finally:
            if self._logins.get(params.name) is cancel:
                del self._logins[params.name]
            issuer.close()
        self._on_login()
        return _shown(params.name, sign_in)

    def _status(self, params: NoParams, call: Call) -> Mapping[str, object]:
        return {"sign_ins": [_shown(name, each) for name, each in sorted(self._sign_ins().all().items())]}

    def _logout(self, params: LogoutParams, call: Call) -> Mapping[str, object]:
        self._end_login(params.name, "signed out")
        issuer: Issuer | None = None
        try:
            issuer = self._issuer(params.name)
        except UsageError:
            if params.name not in self._sign_ins().all():
                raise
        gone, was_told = self._sign_ins().remove(params.name, issuer)
        return {"name": params.name, "was_signed_in": gone is not None, "issuer_told": was_told}

    def _issuer(self, name: str) -> Issuer:
        from fermix.providers.sign_in import issuer_of  # lazy, as above

        return issuer_of(name, self._providers(), self._clock)

    def _end_login(self, name: str, reason: str) -> None:
        if (running := self._logins.pop(name, None)) is not None:
            running.set(reason)


def _shown(name: str, sign_in: SignIn) -> dict[str, object]:
    """A sign-in without its tokens."""
    return {
        "name": name,
        "issuer": sign_in.issuer,
        "account": sign_in.label,
        "plan": sign_in.plan,
        "signed_in_ms": sign_in.signed_in_ms,
        "renewed_ms": sign_in.renewed_ms,
        "expires_ms": sign_in.expires_ms,
        "ended": sign_in.refused,
    }
