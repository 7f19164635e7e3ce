"""Collects gevent without its tests and the loops and resolvers that need other libraries.

gevent names its loop, resolver and pool classes in strings, so the analysis alone would miss them.
"""

from PyInstaller.utils.hooks import collect_submodules

UNUSED = ("tests", "testing", "libuv", "resolver.cares", "resolver.dnspython", "resolver_ares", "ares")

hiddenimports = collect_submodules(
    "gevent",
    filter=lambda name: not any(f"{name}.".startswith(f"gevent.{unused}.") for unused in UNUSED),
    on_error="raise",
)
