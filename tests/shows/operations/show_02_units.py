"""Units pass systemd's own judges, leave nothing in a throw-away root, and live under a real manager.

python show_02_units.py [--binary dist/fermix-slim]

The last part needs root and a control group of version 2: a service manager of a user of its own runs in
namespaces of its own, and the binary installs, drives and removes its service there.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
LIMIT = 4.0
PERSON = "games"
"""A user that every Debian has and nobody uses."""
MANAGER = Path("/usr/lib/systemd/systemd")

NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--cgroup", "--kill-child"]
PREPARE = r"""
set -eu
mount --make-rprivate /
umount -l /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
uid=$(id -u "$PERSON")
mkdir -p /run/systemd/system /run/systemd/unit-root "/run/user/$uid"
chown "$PERSON" "/run/user/$uid" /sys/fs/cgroup /sys/fs/cgroup/cgroup.*
chmod 700 "/run/user/$uid"
exec setpriv --reuid="$PERSON" --regid="$(id -g "$PERSON")" --clear-groups \
  env -i HOME="$1" USER="$PERSON" PATH=/usr/bin:/bin LANG=C.UTF-8 \
  XDG_RUNTIME_DIR="/run/user/$uid" MANAGER="$MANAGER" FERMIX="$2" bash -euc "$LIFE"
"""
LIFE = r"""
"$MANAGER" --user > "$HOME/manager.log" 2>&1 &
for _ in $(seq 100); do systemctl --user list-units >/dev/null 2>&1 && break; sleep 0.1; done
cd "$HOME"
find . -path ./.cache -prune -o -print | sort > "$HOME/../before"
mkdir -m 700 .fermix
printf '[http]\nport = 0\n' > .fermix/config.toml
state() { systemctl --user show fermix.service --property="$1" --value; }
say() { echo "  $*"; }

"$FERMIX" service install
"$FERMIX" service status
[ "$(state SubState)" = running ] || { say "does not run"; exit 1; }
grep -q "^CapBnd:.*0000000000000000$" "/proc/$(state MainPID)/status" || say "plain: capabilities kept"

"$FERMIX" restart; "$FERMIX" status
kill -9 "$(state MainPID)"
for _ in $(seq 100); do
  [ "$(state NRestarts)" = 1 ] && "$FERMIX" status >/dev/null 2>&1 && break; sleep 0.1
done
[ "$(state NRestarts)" = 1 ] || { say "was not restarted after a kill"; exit 1; }

"$FERMIX" stop
[ "$(state ActiveState)" = inactive ] || { say "a stop is no clean end"; exit 1; }

echo '[nonsense]' >> .fermix/config.toml
"$FERMIX" start && { say "started with a broken config"; exit 1; }
[ "$(state ExecMainStatus) $(state NRestarts) $(state ActiveState)" = "78 0 failed" ] ||
  { say "a broken config was tried again: $(state ExecMainStatus) $(state NRestarts)"; exit 1; }
printf '[http]\nport = 0\n' > .fermix/config.toml

unit=.config/systemd/user/fermix.service
sed -i.bak 's#^ExecStart=.*#ExecStart=/bin/false#; s/^RestartSec=.*/RestartSec=50ms/' $unit
systemctl --user daemon-reload
systemctl --user start fermix.service || true
for _ in $(seq 100); do [ "$(state Result)" = start-limit-hit ] && break; sleep 0.1; done
"$FERMIX" service status && { say "drift was not seen"; exit 1; }
rm $unit.bak
"$FERMIX" service install

"$FERMIX" service uninstall
rm -r .fermix
find . -path ./.cache -prune -o -print | sort > "$HOME/../after"
diff "$HOME/../before" "$HOME/../after" || { say "something is left"; exit 1; }
systemctl --user exit || true
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, default=CHECKOUT / "dist/fermix-slim")
    binary = parser.parse_args().binary.resolve()
    folder = Path(tempfile.mkdtemp(prefix="fx-show-"))
    try:
        # A folder others may enter: the person of the last part runs the binary from here.
        folder.chmod(0o755)
        program = folder / "fermix"
        shutil.copy(binary, program)
        program.chmod(0o755)
        scores = {scope: judged(folder, program, scope) for scope in ("user", "system")}
        lived = live(folder, program)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"exposure: user unit {scores['user']}, system unit {scores['system']} (limit {LIMIT}); "
        f"nothing left in a throw-away root; real service manager: {lived}"
    )
    return 0 if all(score <= LIMIT for score in scores.values()) else 1


def judged(folder: Path, program: Path, scope: str) -> float:
    """Install the unit in a throw-away root, have it judged, remove it; its exposure."""
    root = folder / f"{scope}-root"
    home = root / "home/ann/.fermix"
    home.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(home, pwd.getpwnam(PERSON).pw_uid, -1)
    before = sorted(root.rglob("*"))
    environment = {
        "HOME": "/home/ann",
        "PATH": os.environ["PATH"],
        "FERMIX_RUNTIME_DIR": str(folder / "unpacked"),
    }

    def service(verb: str, *words: str) -> None:
        command = [str(program), "service", verb, f"--{scope}", "--root", str(root), *words]
        subprocess.run(command, env=environment, cwd=folder, check=True, timeout=120)

    service("install", *(("--confined",) if scope == "user" else ()))
    (unit,) = root.rglob("systemd/*/fermix.service")
    exposure = judge(folder, unit, scope)
    service("status")
    service("uninstall")
    assert sorted(root.rglob("*")) == before, "uninstall left something"
    home.rmdir()
    (root / "home/ann").rmdir()
    (root / "home").rmdir()
    root.rmdir()
    if scope == "user" or os.geteuid():  # a root that was not there is taken away again, too
        service("install")
        service("uninstall")
        assert not root.exists(), "uninstall left its root"
    return exposure


def judge(folder: Path, unit: Path, scope: str) -> float:
    """The exposure of a unit that `systemd-analyze verify` has nothing to say against."""
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
    analyze = ["systemd-analyze", f"--{scope}", "--no-pager"]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*analyze, *words], env=environment, capture_output=True, text=True, check=False, timeout=60
        )

    verified = run("verify", str(unit))
    said = verified.stdout + verified.stderr
    assert (verified.returncode, said) == (0, ""), f"verify: {said}"
    table = run("security", "--offline=true", str(unit)).stdout
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", table)
    assert found is not None, table
    open_still = json.loads(run("security", "--offline=true", "--json=short", str(unit)).stdout)
    left = sum(1 for row in open_still if row["set"] is False)
    print(f"{scope} unit: verified, exposure {found[1]}, {left} of {len(open_still)} left open on purpose")
    return float(found[1])


def live(folder: Path, program: Path) -> str:
    """Have a real service manager run the service; what came of it."""
    group = next((path for path in map(Path, groups()) if (path / "cgroup.procs").exists()), None)
    if os.geteuid() != 0 or group is None or not MANAGER.exists():
        return "not tried (needs root, systemd and control groups of version 2)"
    own = group / f"fx-show-{os.getpid()}"
    home = folder / "person/home"
    home.mkdir(parents=True)
    for path in (home.parent, home):
        shutil.chown(path, PERSON)
    own.mkdir()
    try:
        enter = f'echo $$ > {own}/cgroup.procs; exec "$@"'
        done = subprocess.run(
            ["bash", "-c", enter, "bash", *NAMESPACES, "bash", "-c", PREPARE, "bash", home, program],
            env={**os.environ, "PERSON": PERSON, "MANAGER": str(MANAGER), "LIFE": LIFE},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
            check=False,
        )
    finally:
        for path in sorted((path for path in own.rglob("*") if path.is_dir()), reverse=True):
            path.rmdir()
        own.rmdir()
    print(done.stdout)
    assert done.returncode == 0, f"exit status {done.returncode}"
    return "installed, restarted, killed, stopped, given up on, repaired, removed"


def groups() -> list[str]:
    """Where control groups of version 2 are mounted."""
    lines = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return [fields[1] for fields in lines if fields[2] == "cgroup2"]


if __name__ == "__main__":
    sys.exit(main())
