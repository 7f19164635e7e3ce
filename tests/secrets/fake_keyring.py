"""Stands in for `fermix _keyring`: one JSON file as the keyring, and ways to misbehave.

Reached as FERMIX_EXE; FAKE_KEYRING is the file, FAKE_KEYRING_MOOD one of `locked`, `absent`, `crash`,
`hang`, `garbage`. Every request is noted in FILE.log.
"""

import json
import os
import signal
import sys
from pathlib import Path


def main() -> int:
    word, action, service, name = sys.argv[1:]
    assert word == "_keyring"
    path = Path(os.environ["FAKE_KEYRING"])
    mood = os.environ.get("FAKE_KEYRING_MOOD", "")
    with path.with_suffix(".log").open("a") as log:
        log.write(f"{action} {name}\n")
    assert not any(key.startswith("FERMIX_SECRET_") for key in os.environ)
    kept = json.loads(path.read_text()) if path.exists() else {}
    key = f"{service}|{name}"
    if mood == "hang":
        signal.pause()
    if mood == "garbage":
        sys.stdout.buffer.write(b"\xff\xfe")
        return 0
    if mood:
        sys.stderr.write("RuntimeError: it said so")
        return {"locked": 4, "absent": 5, "crash": 77}[mood]
    if action == "get":
        sys.stdout.write(kept.get(key, ""))
        return 0 if key in kept else 3
    if action == "set":
        kept[key] = sys.stdin.read()
    if action == "remove" and kept.pop(key, None) is None:
        return 3
    path.write_text(json.dumps(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
