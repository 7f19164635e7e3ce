"""Picks client or daemon before anything heavy is imported."""

from __future__ import annotations

import sys


def main() -> int:
    """The exit status of `fermix <verb>`."""
    words = sys.argv[1:]
    if words in (["version"], ["--version"], ["-V"]):
        return _print_version()
    if words in (["run"], ["run", "--private"]):
        return _run_daemon(is_private="--private" in words)
    if words[:1] == ["_local-model"]:
        return _serve_local_model(words[1:])
    if words[:1] == ["_keyring"] and len(words) == 4:
        return _ask_keyring(words[1:])
    if words in (["status"], ["status", "--json"]):
        return _print_status(as_json="--json" in words)
    from fermix.cli.main import main as run_command_line

    return run_command_line(words)


def _print_version() -> int:
    from fermix import __version__

    try:
        sys.stdout.write(f"fermix {__version__}\n")
        sys.stdout.flush()
    except OSError:
        return 1
    return 0


def _print_status(*, as_json: bool) -> int:
    import os

    from fermix.cli.failure import run_verb
    from fermix.cli.status_report import report
    from fermix.paths import Home

    return run_verb(lambda: report(Home.find(os.environ), as_json=as_json), as_json=as_json)


def _run_daemon(*, is_private: bool) -> int:
    early = sorted(_TOO_EARLY & sys.modules.keys())
    from gevent import monkey

    monkey.patch_all()

    if early:
        sys.stderr.write(f"fermix: cannot start, {early[0]} was imported before gevent patched it.\n")
        return 1
    import os

    from fermix.daemon.mode import Mode
    from fermix.daemon.run import run
    from fermix.paths import Home

    return run(Home.find(os.environ), Mode.PRIVATE if is_private else Mode.FULL, os.environ)


_TOO_EARLY = frozenset({"flask", "gunicorn", "requests", "socket", "ssl", "urllib3"})
"""What keeps unpatched sockets or TLS contexts for ever when it is imported before the patching.

Source: https://github.com/gevent/gevent/issues/1016
"""


def _serve_local_model(words: list[str]) -> int:
    from fermix.providers.local_server import main as serve

    return serve(words)


def _ask_keyring(words: list[str]) -> int:
    from fermix.secrets.keyring_process import main as ask

    return ask(words)


if __name__ == "__main__":
    sys.exit(main())
