"""The frozen program does what frozen programs are known to get wrong: libraries, certificates, sockets."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gevent.server import StreamServer

from fermix.testing.model_server import ModelServer

pytestmark = pytest.mark.binary

WORD = "uncommonly"
CERTIFICATE = Path(__file__).resolve().parent.parent / "fixtures/net/self-signed.pem"


def free_port() -> int:
    """A port of loopback nobody listens on right now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def start(binary: Any, base_url: str) -> dict[str, Any]:
    """Start a daemon that asks the model at an address; its status when it is ready."""
    binary.home.mkdir(mode=0o700)
    config = binary.home / "config.toml"
    config.write_text(
        f'[provider]\nname = "scripted"\n[providers.scripted]\nbase_url = "{base_url}"\nmodel = "m"\n'
        f"[http]\nport = {free_port()}\n"
    )
    config.chmod(0o600)
    binary.start("run")
    deadline = time.monotonic() + 20
    while (done := binary("status", "--json")).exit_code and time.monotonic() < deadline:
        time.sleep(0.1)
    assert done.exit_code == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture
def shell(binary: Any) -> Iterator[Callable[[str], str]]:
    """Runs a command as the shell tool of the frozen daemon; what the model would read."""
    with ModelServer() as model:
        start(binary, model.base_url.replace("127.0.0.1", "localhost"))  # a name: resolved by gevent

        def run(command: str) -> str:
            call = {"name": "shell", "arguments": {"script": command}}
            model.will({"tool_calls": [call]}, {"say": WORD})
            done = binary("ask", "go on")
            assert WORD in done.stdout, done.stderr
            return str(model.requests[-1].body["messages"][-1]["content"])

        yield run


def test_commands_get_the_library_path_of_the_owner_not_of_the_binary(
    binary: Any, shell: Callable[[str], str]
) -> None:
    output = shell("env; bash -c 'echo fine'; cat /proc/self/maps")
    assert "fine" in output
    assert not re.findall(r"^(LD_LIBRARY_PATH|_PYI_|FERMIX_RUNTIME_FD).*", output, re.MULTILINE)
    assert binary.environment["FERMIX_RUNTIME_DIR"] not in re.sub(r"^FERMIX_RUNTIME_DIR=.*", "", output)


def test_commands_use_the_libraries_of_the_system(binary: Any, shell: Callable[[str], str]) -> None:
    program = (
        "import ssl, sqlite3, zlib; print(ssl.OPENSSL_VERSION);"
        "print([line for line in open('/proc/self/maps') if 'libssl' in line or 'libz' in line])"
    )
    python = subprocess.run(["sh", "-c", "command -v python3"], capture_output=True, text=True, check=True)
    output = shell(f'{python.stdout.strip()} -c "{program}"')
    assert "OpenSSL" in output
    assert "dist/unpacked" not in output


def test_https_works_and_goes_on_when_the_unpacked_certificates_vanish(binary: Any) -> None:
    with self_signed() as port:
        start(binary, f"https://localhost:{port}/v1")
        first = binary("ask", "hello")
        assert "certificate" in first.stdout + first.stderr
        program = json.loads(binary("status", "--json").stdout)["pid"]
        unpacked = Path(f"/proc/{program}/exe").resolve().parent
        certificates = unpacked / "_internal/certifi/cacert.pem"
        certificates.unlink()
        second = binary("ask", "hello")
    assert "certificate" in second.stdout + second.stderr
    assert "No such file" not in second.stdout + second.stderr
    assert binary("version").exit_code == 0
    assert certificates.exists(), "the next start repairs the unpacked files"


def test_daemon_serves_http_and_answers_through_gevent(binary: Any) -> None:
    with ModelServer({"say": WORD}) as model:
        status = start(binary, model.base_url)
        assert WORD in binary("ask", "hello").stdout
        request = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=10).status)"
        url = f"http://{status['http']}/health/live"
        done = subprocess.run(["python3", "-c", request, url], capture_output=True, text=True, check=True)
        assert done.stdout == "200\n"


@contextlib.contextmanager
def self_signed() -> Iterator[int]:
    """A TLS server on loopback with a certificate nobody trusts; its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    server = StreamServer(("127.0.0.1", 0), lambda client, _: client.close(), ssl_context=context)
    server.start()
    try:
        yield int(server.address[1])
    finally:
        server.stop(timeout=1)
