"""OpenAI with a ChatGPT subscription: one signs in instead of keeping a key; the responses wire.

Source: https://github.com/openai/codex/tree/main/codex-rs/login/src (server.rs: client, scope, addresses,
ports of the redirect; device_code_auth.rs: the sign-in with a code), read 2026-12-01. The backend has no
public page; base address, `ChatGPT-Account-ID` and `originator` are what every program sends that uses it.
There is no registration for other programs: the public client of OpenAI's own one is named, and who we
are stands in `originator`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from fermix.auth.oauth.issuer import Issuer
from fermix.auth.oauth.keeper import SignIns
from fermix.auth.oauth.spec import Account, DevicePaths, IssuerSpec
from fermix.auth.oauth.store import SignIn
from fermix.errors import FermixError
from fermix.net.door import OwnerDoor
from fermix.providers.apis import failures
from fermix.providers.apis.openai_responses import OpenAiResponses
from fermix.providers.apis.wire import Quirks, Route, number
from fermix.providers.client import HttpProvider, failed_from
from fermix.providers.limits import ModelLimits, Price
from fermix.providers.port import Failed, ModelRequest, Provider, StreamEvent
from fermix.providers.settings import NamedProviderSettings
from fermix.providers.vendors.remote import base_of, model_of, route_of
from fermix.providers.vendors.spec import VendorSpec
from fermix.providers.vendors.vendor import Parts
from fermix.secret import Secret

log = logging.getLogger(__name__)

ORIGINATOR = "fermix"
_CLAIM = "https://api.openai.com/auth"
_PROFILE = "https://api.openai.com/profile"
_NO_INSTRUCTIONS = "Answer the person."
"""The backend refuses a question without instructions."""


def _account_of(claims: Mapping[str, Any]) -> Account:
    ours, profile = claims.get(_CLAIM), claims.get(_PROFILE)
    facts = ours if isinstance(ours, dict) else {}
    mail = claims.get("email") or (profile.get("email") if isinstance(profile, dict) else None)
    return Account(
        id=_text(facts.get("chatgpt_account_id")),
        label=_text(mail),
        plan=_text(facts.get("chatgpt_plan_type")),
    )


def _text(value: object) -> str | None:
    return value[:200] if isinstance(value, str) and value else None


SIGN_IN = IssuerSpec(
    base_url="https://auth.openai.com",
    client_id="app_EMoamEEZ73f0CkXaXp7hrann",
    scope="openid profile email offline_access",
    redirect_path="/auth/callback",
    redirect_ports=(1455, 1457),
    extra={
        "id_token_add_organizations": "true",
        "codex_cli_simplified_flow": "true",
        "originator": ORIGINATOR,
    },
    device=DevicePaths(
        begin="/api/accounts/deviceauth/usercode",
        poll="/api/accounts/deviceauth/token",
        page="/codex/device",
        redirect="/deviceauth/callback",
    ),
    account_of=_account_of,
)
SPEC = VendorSpec(
    name="openai_codex",
    api="openai_responses",
    base_url="https://chatgpt.com/backend-api/codex",
    # Source: https://github.com/RayBytes/ChatMock/issues/103 has what the backend answers to
    # `max_output_tokens` ("Unsupported parameter"), read 2026-12-01
    quirks=Quirks(takes_cache_key=True, takes_output_limit=False),
)


class CodexWire(OpenAiResponses):
    """The responses wire as the subscription's backend wants it."""

    def __init__(self) -> None:
        self.account_id: str | None = None
        """Of the sign-in whose token is sent."""

    def headers(self, key: Secret | None) -> dict[str, str]:
        headers = super().headers(key) | {"originator": ORIGINATOR}
        return headers | ({"ChatGPT-Account-ID": self.account_id} if self.account_id else {})

    def encode(self, request: ModelRequest, route: Route) -> bytes:
        return super().encode(
            request if request.system else replace(request, system=_NO_INSTRUCTIONS), route
        )

    def failure(
        self, status: int, headers: Mapping[str, str], body: bytes, *, route: Route, now_ms: int
    ) -> Failed:
        failed = super().failure(status, headers, body, route=route, now_ms=now_ms)
        if status == 429 and failed.retry_after_s is None and (rest_s := _rest_s(body)) is not None:
            return replace(failed, retry_after_s=rest_s)
        return failed


class CodexProvider:
    """See `Provider`; a token that ran out or is refused is renewed once before a person hears of it."""

    def __init__(self, inner: HttpProvider, wire: CodexWire, sign_ins: SignIns, issuer: Issuer) -> None:
        self._inner = inner
        self._wire = wire
        self._sign_ins = sign_ins
        self._issuer = issuer

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def limits(self) -> ModelLimits:
        return self._inner.limits

    @property
    def price(self) -> Price | None:
        return self._inner.price

    def stream(self, request: ModelRequest) -> Iterator[StreamEvent]:
        """See `Provider.stream`."""
        refused: Secret | None = None
        while True:
            try:
                sign_in = self._sign_in(request, refused)
            except FermixError as error:
                yield failed_from(error, self.name, is_over=request.deadline.is_over())
                return
            for event in self._inner.stream(request):
                if isinstance(event, Failed) and event.http_status == 401 and refused is None:
                    log.info("%s refuses its token; renewing the sign-in", self.name)
                    refused = sign_in.access
                    break
                yield event
            else:
                return

    def token(self) -> Secret:
        """What the next request is sent with; no wait. Raises: SignInMissing, SignInEnded."""
        sign_in = self._sign_ins.peek(self.name, self._issuer)
        self._wire.account_id = sign_in.account_id
        return sign_in.access

    def notice(self) -> str | None:
        return None

    def stop(self, timeout_s: float) -> None:
        """End the kept connections."""
        self._inner.stop(timeout_s)
        self._issuer.close()

    def _sign_in(self, request: ModelRequest, refused: Secret | None) -> SignIn:
        return self._sign_ins.get(
            self.name, self._issuer, cancel=request.cancel, deadline=request.deadline, refused=refused
        )


def make(name: str, model: str | None, settings: NamedProviderSettings | None, parts: Parts) -> Provider:
    """See `Vendor`."""
    settings = settings or NamedProviderSettings()
    model = model_of(name, model, settings)
    door = OwnerDoor(base_of(SPEC, name, settings), connect_timeout_s=settings.connect_timeout_s)
    wire = CodexWire()
    inner = HttpProvider(
        route_of(SPEC, name, model, settings, host=door.address.host),
        wire,
        door,
        key=lambda: provider.token(),  # noqa: PLW0108 (it is made from this)
        idle_timeout_s=settings.idle_timeout_s,
        timeout_s=settings.timeout_s,
        clock=parts.clock,
        effort=settings.effort or None,
    )
    issuer = Issuer(SIGN_IN.at(settings.sign_in_url), parts.clock)
    provider = CodexProvider(inner, wire, parts.sign_ins(), issuer)
    return provider


def _rest_s(body: bytes) -> float | None:
    """When a subscription's limit ends, in seconds; None when the answer does not say.

    Source: https://github.com/openai/codex/issues/4172 has the body: `error.resets_in_seconds`.
    """
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    error = answer.get("error") if isinstance(answer, dict) else None
    rest_s = error.get("resets_in_seconds") if isinstance(error, dict) else None
    seconds = number(rest_s)
    return failures.believed(float(seconds)) if seconds is not None and seconds >= 0 else None


VENDOR = make
