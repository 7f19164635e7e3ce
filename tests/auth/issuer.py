"""An issuer on loopback that rotates tokens: each refresh token counts once, as OpenAI's do.

As its own process: `python -m tests.auth.issuer [--agreed]` prints its port, and serves until it is ended.
`GET /_seen` tells what it was asked, `POST /_trouble` how it is to fail from now on.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import gevent
import msgspec
from gevent.event import Event
from gevent.pywsgi import WSGIServer

ACCOUNT = "acct-7"
MAIL = "me@example.org"


@dataclass
class Trouble:
    """How it fails."""

    statuses: list[int] = field(default_factory=list)
    """What the next questions for tokens are answered with, one by one."""
    delay_s: float = 0.0
    """How long an answer takes, after the token was used up."""
    expires_in: int | None = 3600


class Issuer:
    """Greenlets in the caller's process. Use as a context manager."""

    def __init__(self, port: int = 0) -> None:
        self.trouble = Trouble()
        self.refreshes = 0
        self.refused = 0
        """Times a refresh token came that had been used before, or was never given."""
        self.revoked: list[str] = []
        self.challenges: dict[str, str] = {}
        """Code -> what was told of its verifier."""
        self.is_agreed = False
        self.user_code = "ABCD-1234"
        self.polls = 0
        self.entered = Event()
        """Set while a refresh is under way."""
        self.may_answer = Event()
        self.may_answer.set()
        self._good: set[str] = set()
        self._was_revoked: set[str] = set()
        self._number = 0
        self._server = WSGIServer(("127.0.0.1", port), self._serve, log=None)

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Issuer:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(timeout=0)

    def serve_forever(self) -> None:
        self._server.serve_forever()

    def tokens(self) -> dict[str, Any]:
        """A fresh pair; the refresh token counts until it is used or revoked."""
        self._number += 1
        refresh = f"refresh-{self._number:06d}"
        self._good.add(refresh)
        claims = {
            "https://api.openai.com/auth": {"chatgpt_account_id": ACCOUNT, "chatgpt_plan_type": "plus"},
            "email": MAIL,
            "number": self._number,
        }
        answer: dict[str, Any] = {"access_token": token(claims), "refresh_token": refresh}
        if self.trouble.expires_in is not None:
            answer["expires_in"] = self.trouble.expires_in
        return answer

    def forget_all(self) -> None:
        """No refresh token counts any more."""
        self._good.clear()

    def _serve(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        body = environ["wsgi.input"].read()
        status, answer = self._answer(environ["REQUEST_METHOD"], environ["PATH_INFO"], body)
        start_response(f"{status} Told", [("Content-Type", "application/json")])
        return [msgspec.json.encode(answer)]

    def _answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        match path:
            case "/oauth/token":
                return self._token(dict(parse_qsl(body.decode())))
            case "/oauth/revoke":
                self.revoked.append(msgspec.json.decode(body)["token"])
                self._good.discard(self.revoked[-1])
                self._was_revoked.add(self.revoked[-1])
                return 200, {}
            case "/api/accounts/deviceauth/usercode":
                return 200, {"device_auth_id": "d1", "user_code": self.user_code, "interval": "0"}
            case "/api/accounts/deviceauth/token":
                self.polls += 1
                if not self.is_agreed:
                    return 403, {}
                verifier = "v" * 64
                self.challenges["device"] = challenge_of(verifier)
                return 200, {
                    "authorization_code": "device",
                    "code_verifier": verifier,
                    "code_challenge": "",
                }
            case "/_seen":
                return 200, {
                    "refreshes": self.refreshes,
                    "refused": self.refused,
                    "revoked": self.revoked,
                    "counting": len(self._good),
                }
            case "/_trouble":
                self.trouble = msgspec.json.decode(body, type=Trouble)
                return 200, {}
            case "/_tokens":
                return 200, self.tokens()
        return 404, {"error": "not_found"}

    def _token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        assert form["client_id"]
        if self.trouble.statuses:
            return self.trouble.statuses.pop(0), {"error": {"code": "busy", "message": "come back later"}}
        if form["grant_type"] == "authorization_code":
            if self.challenges.pop(form["code"], None) != challenge_of(form["code_verifier"]):
                return 400, {"error": "invalid_grant", "error_description": "wrong verifier"}
            return 200, self.tokens()
        status, answer = self._rotated(form["refresh_token"])
        self.entered.set()
        self.may_answer.wait(20)
        gevent.sleep(self.trouble.delay_s)
        return status, answer

    def _rotated(self, refresh: str) -> tuple[int, dict[str, Any]]:
        if refresh not in self._good:
            self.refused += refresh not in self._was_revoked
            said = {"code": "refresh_token_reused", "message": "Your refresh token was already used."}
            return 401, {"error": said}
        self._good.discard(refresh)
        self.refreshes += 1
        return 200, self.tokens()


def challenge_of(verifier: str) -> str:
    """S256 of RFC 7636."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def token(claims: dict[str, Any]) -> str:
    """A JSON web token with these claims, unsigned."""
    middle = base64.urlsafe_b64encode(msgspec.json.encode(claims)).rstrip(b"=").decode()
    return f"e30.{middle}.c2ln"


def visit(issuer: Issuer, url: str, **changes: str) -> str:
    """Where a browser goes after its person agreed at the authorize address `url`."""
    words = dict(parse_qsl(urlsplit(url).query)) | changes
    code = f"code-{len(issuer.challenges)}"
    issuer.challenges[code] = words["code_challenge"]
    return f"{words['redirect_uri']}?code={code}&state={words['state']}"


if __name__ == "__main__":
    made = Issuer()
    made.is_agreed = "--agreed" in sys.argv
    made._server.start()
    print(made.port, flush=True)
    made.serve_forever()
