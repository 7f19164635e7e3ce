"""What is asked of an issuer: tokens for a code, fresh tokens for old ones, an end of them.

Source: RFC 6749 (4.1.3 code, 6 refresh, 5.2 errors), RFC 7636 (PKCE), RFC 7009 (revocation); what OpenAI's
own programs add: https://github.com/openai/codex/tree/main/codex-rs/login/src (server.rs, auth/revoke.rs,
device_code_auth.rs), read 2026-12-01.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from fermix.auth.oauth.spec import IssuerSpec, claims_of
from fermix.auth.oauth.store import SignIn
from fermix.clock import Clock
from fermix.errors import DeadlineExceeded, IssuerBusy, NetworkError, SignInEnded, SignInFailed
from fermix.net.door import OwnerDoor
from fermix.secret import Secret
from fermix.tasks import Cancel, Deadline

log = logging.getLogger(__name__)

Shape = TypeVar("Shape")

ASK_S = 30.0
"""Longest one question to an issuer may take."""
_BODY_BYTES = 256 * 1024
_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"
_ENDED = re.compile(r"invalid_grant|refresh_token_\w+|token_(expired|revoked|invalidated)")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class _Tokens(msgspec.Struct):
    """The answer of a token address (RFC 6749, 5.1)."""

    access_token: str = ""
    refresh_token: str = ""
    id_token: str = ""
    expires_in: float | None = None


class DeviceCode(msgspec.Struct):
    """A sign-in with a code, begun."""

    device_auth_id: str
    user_code: str = ""
    usercode: str = ""
    """An older name of it."""
    interval: str | float = 5.0

    @property
    def code(self) -> str:
        """What the person types."""
        return self.user_code or self.usercode

    @property
    def pause_s(self) -> float:
        """How long to wait between two looks, within reason."""
        try:
            return min(60.0, max(0.0, float(self.interval)))
        except ValueError:
            return 5.0


class _Approved(msgspec.Struct):
    """A sign-in with a code, once its person agreed."""

    authorization_code: str
    code_verifier: str


class Issuer:
    """One issuer at the address its owner or its vendor's data names."""

    def __init__(self, spec: IssuerSpec, clock: Clock) -> None:
        """Raises: AddressRefused when the base is no plain http(s) address."""
        self.spec = spec
        self._clock = clock
        self._door = OwnerDoor(spec.base_url, kept_connections=2)
        self.origin = self._door.address.origin

    def authorize_url(self, *, redirect: str, state: str, challenge: str) -> str:
        """Where the person's browser goes."""
        words = {
            "response_type": "code",
            "client_id": self.spec.client_id,
            "redirect_uri": redirect,
            "scope": self.spec.scope,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            **self.spec.extra,
            "state": state,
        }
        return f"{self.spec.base_url.rstrip('/')}{self.spec.authorize_path}?{urlencode(words)}"

    def exchange(self, code: str, *, verifier: str, redirect: str) -> SignIn:
        """The tokens for a code. Raises: SignInFailed, IssuerBusy."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "client_id": self.spec.client_id,
            "code_verifier": verifier,
        }
        status, body = self._post(self.spec.exchange_path, urlencode(form).encode(), _FORM)
        if status != 200:
            raise self._refused(status, body)
        now_ms = self._clock.now_ms()
        fresh = SignIn(
            id=secrets.token_hex(8),
            issuer=self.origin,
            access=Secret(""),
            expires_ms=None,
            signed_in_ms=now_ms,
            renewed_ms=now_ms,
        )
        return self._with(fresh, body)

    def renew(self, sign_in: SignIn) -> SignIn:
        """The same sign-in with fresh tokens; the old refresh token may count no more from now on.

        Raises: SignInEnded when it was taken back or ran out; SignInFailed for another refusal;
        IssuerBusy when it may work later.
        """
        form = {
            "grant_type": "refresh_token",
            "refresh_token": sign_in.refresh.reveal(),
            "client_id": self.spec.client_id,
        }
        status, body = self._post(self.spec.exchange_path, urlencode(form).encode(), _FORM)
        if status == 200:
            return self._with(sign_in, body)
        codes, said = _error(body)
        if status == 401 or (status in (400, 403) and _ENDED.search(codes)):
            raise SignInEnded(f"{self.origin} renews the sign-in no more{_quoted(said or codes)}.")
        raise self._refused(status, body)

    def revoke(self, sign_in: SignIn) -> bool:
        """Tell the issuer that these tokens are to count no more; whether it heard."""
        token = sign_in.refresh if sign_in.refresh.reveal() else sign_in.access
        if not token.reveal() or sign_in.issuer != self.origin:
            return False
        kind = "refresh_token" if token is sign_in.refresh else "access_token"
        words = {"token": token.reveal(), "token_type_hint": kind, "client_id": self.spec.client_id}
        try:
            status, _ = self._post(self.spec.revoke_path, msgspec.json.encode(words), _JSON, seconds=10.0)
        except IssuerBusy as error:
            log.info("A sign-in was not revoked: %s", error)
            return False
        return status == 200

    def device_begin(self) -> DeviceCode:
        """A code for a person to type elsewhere. Raises: SignInFailed, IssuerBusy."""
        assert self.spec.device is not None
        body = msgspec.json.encode({"client_id": self.spec.client_id})
        status, answer = self._post(self.spec.device.begin, body, _JSON)
        if status == 404:
            raise SignInFailed(f"{self.origin} offers no sign-in with a code.")
        if status != 200:
            raise self._refused(status, answer)
        return self._read(answer, DeviceCode)

    def device_poll(self, begun: DeviceCode) -> SignIn | None:
        """The tokens once the person agreed; None while they have not. Raises: SignInFailed, IssuerBusy."""
        paths = self.spec.device
        assert paths is not None
        body = msgspec.json.encode({"device_auth_id": begun.device_auth_id, "user_code": begun.code})
        status, answer = self._post(paths.poll, body, _JSON)
        if status in (403, 404):
            return None
        if status != 200:
            raise self._refused(status, answer)
        agreed = self._read(answer, _Approved)
        redirect = f"{self.spec.base_url.rstrip('/')}{paths.redirect}"
        return self.exchange(agreed.authorization_code, verifier=agreed.code_verifier, redirect=redirect)

    def close(self) -> None:
        """End the kept connections."""
        self._door.close()

    def _with(self, sign_in: SignIn, body: bytes) -> SignIn:
        """The sign-in with the tokens of an answer; what it leaves out stays as it was."""
        tokens = self._read(body, _Tokens)
        if not tokens.access_token:
            raise SignInFailed(f"{self.origin} answered without an access token.")
        claims = claims_of(tokens.access_token)
        now_ms = self._clock.now_ms()
        account = self.spec.account_of({**claims, **claims_of(tokens.id_token)})
        return replace(
            sign_in,
            access=Secret(tokens.access_token),
            refresh=Secret(tokens.refresh_token) if tokens.refresh_token else sign_in.refresh,
            expires_ms=_end_ms(tokens.expires_in, claims, now_ms),
            renewed_ms=now_ms,
            account_id=account.id or sign_in.account_id,
            label=account.label or sign_in.label,
            plan=account.plan or sign_in.plan,
            refused=None,
        )

    def _post(
        self, path: str, body: bytes, media_type: str, *, seconds: float = ASK_S
    ) -> tuple[int, bytes]:
        """Status and body. Raises: IssuerBusy when no whole answer came."""
        try:
            with self._door.send(
                "POST",
                path,
                body,
                headers={"Content-Type": media_type, "Accept": _JSON},
                cancel=Cancel(),
                deadline=Deadline.after(seconds),
                idle_timeout_s=seconds,
                limit_bytes=_BODY_BYTES,
            ) as response:
                return response.status, response.read_all()
        except (NetworkError, DeadlineExceeded) as error:
            raise IssuerBusy(f"{self.origin} cannot be asked: {error}") from error

    def _refused(self, status: int, body: bytes) -> SignInFailed | IssuerBusy:
        codes, said = _error(body)
        told = f"{self.origin} answered {status}{_quoted(said or codes)}."
        if status >= 500 or status in (408, 425, 429):
            return IssuerBusy(told)
        return SignInFailed(told)

    def _read(self, body: bytes, shape: type[Shape]) -> Shape:
        try:
            return msgspec.json.decode(body, type=shape)
        except (msgspec.DecodeError, RecursionError):
            # Not chained: the error could show what was sent.
            raise IssuerBusy(f"{self.origin} sent an answer that cannot be read.") from None


def new_verifier() -> tuple[str, str]:
    """A secret for one sign-in, and what is told of it beforehand (RFC 7636, S256)."""
    verifier = secrets.token_urlsafe(64)
    digest = hashlib.sha256(verifier.encode()).digest()
    return verifier, base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _end_ms(expires_in: float | None, claims: Mapping[str, object], now_ms: int) -> int | None:
    if expires_in is not None and 0 < expires_in < 1e9:
        return now_ms + int(expires_in * 1000)
    stated = claims.get("exp")
    return int(stated * 1000) if isinstance(stated, int | float) and 0 < stated < 1e11 else None


def _error(body: bytes) -> tuple[str, str]:
    """The code and the words of an error, in either of the shapes that are about."""
    try:
        whole = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return "", ""
    if not isinstance(whole, dict):
        return "", ""
    inner = whole.get("error")
    facts = inner if isinstance(inner, dict) else whole
    code = facts.get("code") or (inner if isinstance(inner, str) else "") or facts.get("type") or ""
    said = facts.get("message") or facts.get("error_description") or facts.get("detail") or ""
    return _one_line(code), _one_line(said)


def _one_line(value: object) -> str:
    return _UNPRINTABLE.sub(" ", value).strip()[:200] if isinstance(value, str) else ""


def _quoted(text: str) -> str:
    return f": {text!r}" if text else ""
