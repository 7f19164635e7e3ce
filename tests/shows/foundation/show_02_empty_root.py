"""Show 2: the binary in an empty root without Python: a person, a read-only folder, four starts at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
PERSON = 1000
HOME = "home/person"

# In namespaces of its own: nothing of the machine's mounts, processes or network is seen or left behind.
NAMESPACES = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
SCRIPT = r"""
root=$1
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --bind "$root/opt/fermix" "$root/opt/fermix"
mount -o remount,bind,ro "$root/opt/fermix"
ip link set lo up
person() {
  chroot --userspec=1000:1000 --groups= "$root" \
    /usr/bin/env -i HOME=/home/person PATH=/usr/bin:/bin LANG=C.UTF-8 "$@"
}
now() { date +%s%N; }
if person touch /opt/fermix/x 2>/dev/null; then echo "the folder is not read-only"; exit 1; fi

started=$(now)
pids=
for number in 1 2 3 4; do
  person /opt/fermix/fermix version >"$root/tmp/$number" 2>&1 &
  pids="$pids $!"
done
for pid in $pids; do wait "$pid" || { cat "$root"/tmp/?; exit 1; }; done
echo "four_ms $((($(now) - started) / 1000000))"
cat "$root"/tmp/?

started=$(now)
person /opt/fermix/fermix ask "Say hello"
echo
echo "answer_ms $((($(now) - started) / 1000000))"
person /opt/fermix/fermix status
person /opt/fermix/fermix stop
"""


def main() -> None:
    """Make the root, run in it, look at what it left; AssertionError where the promise does not hold."""
    if os.geteuid() != 0:
        sys.exit("this show makes a root file system: run it as root")
    need("debootstrap", "debootstrap")
    need("ip", "iproute2")
    root = Path(tempfile.mkdtemp(prefix="fx-show-", dir="/var/tmp"))
    root.chmod(0o755)
    try:
        make_root(root)
        output = run_inside(root)
        unpacked = sorted(path.name for path in (root / HOME / ".cache/fermix").glob("program-*"))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    versions = [line for line in output.splitlines() if line.startswith("fermix ")]
    assert len(versions) >= 4, "not every start said its version"
    assert len(set(versions[:4])) == 1, versions
    assert len(unpacked) == 1, unpacked
    figures = dict(
        line.split() for line in output.splitlines() if line.startswith(("four_ms", "answer_ms"))
    )
    print(f"four first starts at once: {figures['four_ms']} ms; first answer: {figures['answer_ms']} ms")


def need(program: str, package: str) -> None:
    """Install a Debian package for a program that is not here."""
    if not shutil.which(program):
        subprocess.run(["apt-get", "update"], check=True, stdin=subprocess.DEVNULL)
        subprocess.run(["apt-get", "install", "-y", package], check=True, stdin=subprocess.DEVNULL)


def mirror() -> str:
    """The package mirror this machine is set up with, for its own release."""
    template = "$(REPO_URI) $(CODENAME) $(COMPONENT)"
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", template], check=True, capture_output=True, text=True
    )
    for line in listed.stdout.splitlines():
        address, release, component = [*line.split(), "", "", ""][:3]
        if (release, component) == (codename(), "main"):
            return address
    raise AssertionError("no mirror of this release's main component in /etc/apt")


def codename() -> str:
    """This machine's release, like bookworm."""
    lines = Path("/etc/os-release").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["VERSION_CODENAME"].strip('"')


def make_root(root: Path) -> None:
    """The smallest system there is, the binary in it, and one person."""
    subprocess.run(["debootstrap", "--variant=minbase", codename(), str(root), mirror()], check=True)
    pythons = [str(path) for path in root.glob("usr/bin/python*")]
    assert pythons == [], f"Python is there: {pythons}"
    folder = root / "opt/fermix"
    folder.mkdir(parents=True)
    shutil.copy(CHECKOUT / "dist/fermix", folder / "fermix")
    home = root / HOME
    home.mkdir(parents=True)
    os.chown(home, PERSON, PERSON)


def run_inside(root: Path) -> str:
    """Run the script in the root; what it printed."""
    done = subprocess.run(
        [*NAMESPACES, "bash", "-euc", SCRIPT, "bash", str(root)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, f"exit status {done.returncode}"
    return done.stdout


if __name__ == "__main__":
    main()
