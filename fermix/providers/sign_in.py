"""Which providers one signs in to, and where."""

from __future__ import annotations

from collections.abc import Mapping

from fermix.auth.oauth.issuer import Issuer
from fermix.auth.oauth.spec import IssuerSpec
from fermix.clock import Clock
from fermix.errors import UsageError
from fermix.providers.build import SIGN_INS, load, vendor_of
from fermix.providers.settings import NamedProviderSettings


def issuer_of(name: str, named: Mapping[str, NamedProviderSettings], clock: Clock) -> Issuer:
    """The issuer of this provider, at the address the settings say.

    Raises: UsageError when it is none that one signs in to.
    """
    table = named.get(name)
    path = SIGN_INS.get(vendor_of(name, table))
    if path is None:
        can = sorted({*SIGN_INS, *(each for each in named if vendor_of(each, named[each]) in SIGN_INS)})
        raise UsageError(
            f"One does not sign in to {name[:80]!r}. Available: {', '.join(can)}.",
        )
    spec = load(path)
    assert isinstance(spec, IssuerSpec)
    return Issuer(spec.at(table.sign_in_url if table is not None else None), clock)
