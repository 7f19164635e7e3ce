"""One process that uses and renews a sign-in, told what to do by lines on its standard input.

python -m tests.shows.providers.sign_in_worker HOME ISSUER_URL
`login`, `renew`, `renew N`, `logout`; each is answered with one line of JSON.
"""

from gevent import monkey

monkey.patch_all()

import json
import sys
from pathlib import Path

from fermix.auth.oauth import login
from fermix.auth.oauth.issuer import Issuer
from fermix.auth.oauth.keeper import SignIns
from fermix.clock import SystemClock
from fermix.errors import FermixError
from fermix.paths import Home
from fermix.providers.vendors.openai_codex import SIGN_IN
from fermix.tasks import Cancel, Deadline, ThreadPool

NAME = "openai_codex"


def main(home: str, url: str) -> None:
    issuer = Issuer(SIGN_IN.at(url), SystemClock())
    sign_ins = SignIns(Home(Path(home)), clock=SystemClock(), pool=ThreadPool(2), know=lambda secret: None)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        word, _, count = line.strip().partition(" ")
        try:
            told = done(word, int(count or 1), sign_ins, issuer)
        except FermixError as error:
            told = {"error": error.code}
        print(json.dumps(told), flush=True)


def done(word: str, count: int, sign_ins: SignIns, issuer: Issuer) -> dict[str, object]:
    """What came of one line. Raises: what the sign-in says."""
    match word:
        case "login":
            made = login.with_code(
                issuer, show=lambda url, code: None, cancel=Cancel(), deadline=Deadline.after(20)
            )
            sign_ins.put(NAME, made, issuer)
        case "logout":
            gone, was_told = sign_ins.remove(NAME, issuer)
            return {"gone": gone is not None, "told": was_told}
        case "renew":
            for _ in range(count):
                used = sign_ins.peek(NAME, issuer).access
                fresh = sign_ins.get(
                    NAME, issuer, cancel=Cancel(), deadline=Deadline.after(60), refused=used
                ).access
                assert fresh != used
    return {"access": sign_ins.peek(NAME, issuer).access.reveal()}


if __name__ == "__main__":
    main(*sys.argv[1:3])
