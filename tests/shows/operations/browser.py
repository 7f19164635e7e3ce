"""A real browser on pages that mean harm: one of another origin, one whose name was rebound to loopback."""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import shutil
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.bot import Bot
from tests.states import rows

PAGE = Path(__file__).with_name("page.html")
BROWSER_TIMEOUT_S = 120
NAME = "evil.example"
SECOND_LOOPBACK = "127.0.0.2"
"""Where the owner of a rebound name has his own server, on the daemon's port."""
REFUSALS = {"host_refused", "origin_refused"}

Told = list[tuple[str, str | None]]
"""Each try, and what the page could read of it."""


def attack(bot: Bot) -> tuple[int, int]:
    """How many tries each page made. Raises: AssertionError when one read or caused anything."""
    install()
    foreign = _of_another_origin(bot)
    read = {name: text for name, text in foreign if text is not None}
    assert not read, f"a page of another origin could read: {read}"
    rebound = _behind_a_rebound_name(bot)
    served = {name: text for name, text in rebound if text is not None and not _is_refusal(text)}
    assert not served, f"a page behind a rebound name was served: {served}"
    refused = sum(text is not None for _, text in rebound)
    assert refused >= 20, f"only {refused} tries reached the daemon under the rebound name: {rebound}"
    assert rows(bot, "SELECT count(*) FROM inbox WHERE body LIKE '%from a page%'") == [(0,)]
    assert rows(bot, "SELECT count(*) FROM conversations WHERE chat_id = 'page'") == [(0,)]
    return len(foreign), len(rebound)


def install() -> None:
    """Chromium from the distribution, when it is not there yet."""
    if shutil.which("chromium") is None:
        for words in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", *words], check=True, timeout=900, stdin=subprocess.DEVNULL)


def _of_another_origin(bot: Bot) -> Told:
    """The same tries on the daemon and on a server that lets everybody in, to see that they leave."""
    with _serving("127.0.0.1", 0) as trap:
        with _serving("127.0.0.1", 0) as site:
            site.page(bot, daemon=f"http://127.0.0.1:{trap.server_port}")
            _open(f"http://127.0.0.1:{site.server_port}/", site)
            methods = Counter(trap.seen)
            assert methods["GET"] >= 10 and methods["POST"] >= 10, (
                f"the page's tries did not leave: {methods}"
            )
        with _serving("127.0.0.1", 0) as site:
            site.page(bot, daemon=f"http://{bot.address}")
            return _open(f"http://127.0.0.1:{site.server_port}/", site)


def _behind_a_rebound_name(bot: Bot) -> Told:
    """The name leads to its owner's server for the page, then to the daemon for everything else.

    The server hands those requests on byte by byte: the daemon sees what it would see after the name's
    address was changed, and the browser takes the answers for the page's own.
    """
    port = int(bot.address.rpartition(":")[2])
    with _serving(SECOND_LOOPBACK, port) as site:
        site.passes_on_to = bot.address
        site.page(bot, daemon="")
        rule = f"--host-resolver-rules=MAP {NAME} {SECOND_LOOPBACK}"
        return _open(f"http://{NAME}:{port}/", site, rule)


def _is_refusal(text: str) -> bool:
    """Whether a body, perhaps after its status, is a refusal for the name or the origin."""
    try:
        return json.loads(text[text.index("{") :])["error"]["code"] in REFUSALS
    except (ValueError, KeyError, TypeError):
        return False


class _Site(ThreadingHTTPServer):
    """The harmful page, and where it reports to."""

    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        super().__init__((host, port), _Handler)
        self.body = b""
        self.passes_on_to: str | None = None
        self.seen: list[str] = []
        self.told: queue.Queue[Told] = queue.Queue()

    def page(self, bot: Bot, *, daemon: str) -> None:
        """What is served at `/`."""
        text = PAGE.read_text().replace("DAEMON", daemon).replace("TOKEN", bot.token)
        self.body = text.replace("REPORT", "/report").encode()


class _Handler(BaseHTTPRequestHandler):
    server: _Site

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_OPTIONS(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the show's own lines count."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append(self.command)
        if self.path == "/report":
            self.server.told.put([(name, text) for name, text in json.loads(body)])
            self._answer(b"")
        elif self.path == "/" or self.server.passes_on_to is None:
            self._answer(self.server.body)
        else:
            self._pass_on(body)

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _pass_on(self, body: bytes) -> None:
        host, _, port = str(self.server.passes_on_to).partition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=20)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        told = answer.read()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers.get("Content-Type", "text/plain"))
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)
        connection.close()


@contextlib.contextmanager
def _serving(host: str, port: int) -> Iterator[_Site]:
    site = _Site(host, port)
    thread = threading.Thread(target=site.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.shutdown()
        site.server_close()


def _open(url: str, site: _Site, *words: str) -> Told:
    """What the page reports once it has tried everything."""
    folder = tempfile.mkdtemp(prefix="fx-browser-")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    command += ["--no-first-run", "--disable-background-networking", f"--user-data-dir={folder}"]
    with (Path(folder) / "browser.log").open("wb") as log:
        browser = subprocess.Popen(
            [*command, *words, url], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            return site.told.get(timeout=BROWSER_TIMEOUT_S)
        except queue.Empty:
            told = (Path(folder) / "browser.log").read_text(errors="replace")[-2000:]
            raise AssertionError(f"the page did not report: {told}") from None
        finally:
            browser.terminate()
            try:
                browser.wait(20)
            except subprocess.TimeoutExpired:
                browser.kill()
                browser.wait(20)
            shutil.rmtree(folder, ignore_errors=True)
