"""Signing in: with a browser on this machine, or with a code that is typed anywhere."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from fermix.auth.oauth.issuer import DeviceCode, Issuer, new_verifier
from fermix.auth.oauth.loopback import Loopback
from fermix.auth.oauth.store import SignIn
from fermix.errors import IssuerBusy, SignInFailed
from fermix.tasks import Cancel, Deadline

LOGIN_S = 900.0
"""Longest a person may take; as long as codes count."""
_LEAST_PAUSE_S = 0.01


def with_browser(
    issuer: Issuer, *, show: Callable[[str], None], cancel: Cancel, deadline: Deadline
) -> SignIn:
    """The tokens after a person signed in at the address `show` was given.

    Raises: SignInFailed, IssuerBusy, Cancelled.
    """
    verifier, challenge = new_verifier()
    state = secrets.token_urlsafe(32)
    spec = issuer.spec
    with Loopback(spec.redirect_ports, spec.redirect_path, state=state) as loopback:
        show(issuer.authorize_url(redirect=loopback.redirect, state=state, challenge=challenge))
        code = loopback.code(deadline, cancel)
        return issuer.exchange(code, verifier=verifier, redirect=loopback.redirect)


def with_code(
    issuer: Issuer, *, show: Callable[[str, str], None], cancel: Cancel, deadline: Deadline
) -> SignIn:
    """The tokens after a person typed the code at the address, both of which `show` was given.

    Raises: SignInFailed, IssuerBusy, Cancelled.
    """
    paths = issuer.spec.device
    if paths is None:
        raise SignInFailed(f"{issuer.origin} offers no sign-in with a code.", hint="fermix auth login")
    begun: DeviceCode = issuer.device_begin()
    show(f"{issuer.spec.base_url.rstrip('/')}{paths.page}", begun.code)
    while not deadline.is_over():
        if cancel.wait(min(max(_LEAST_PAUSE_S, begun.pause_s), deadline.remaining_s())):
            cancel.check()
        try:
            sign_in = issuer.device_poll(begun)
        except IssuerBusy:
            continue  # the person is still typing; the next look may reach it
        if sign_in is not None:
            return sign_in
    raise SignInFailed("Nobody typed the code in time.", hint="fermix auth login --device")
