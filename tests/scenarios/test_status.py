"""What a daemon says of itself."""

from __future__ import annotations

import json
import urllib.request

from tests.bot import running


def test_status_names_the_http_address_that_was_really_bound() -> None:
    with running({}, full=True) as bot:
        status = bot.status()
        address = status["http"]

        token = (bot.home / "api-token").read_text().strip()
        request = urllib.request.Request(
            f"http://{address}/health", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            report = json.loads(answer.read())

    assert report["status"] == "ready"
    assert status["checks"] == report["checks"]
    assert {child["name"] for child in report["children"]} >= {
        "db",
        "commands",
        "agent",
        "gateway",
        "control",
    }
