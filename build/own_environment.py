"""Runs first in the frozen program: keeps what is private to the frozen process out of its children."""

import _signal  # comes with the interpreter, while `signal` would first have to be imported

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    # Ctrl-C just ends a program that is still loading; `run_verb` listens to it from then on.
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import contextlib
import os


def _make_private() -> None:
    """Undo PyInstaller's library path, and let the launcher's lock end with this process."""
    environment = os.environ
    # The loader read it when this process started; a child must find the system's libraries, not ours.
    original = environment.pop("LD_LIBRARY_PATH_ORIG", None)
    if original is not None:
        environment["LD_LIBRARY_PATH"] = original
    else:
        environment.pop("LD_LIBRARY_PATH", None)
    for name in [name for name in environment if name.startswith("_PYI_")]:
        del environment[name]
    # The descriptor holds the flock that keeps the unpacked files; commands we start have no use for it.
    descriptor = environment.pop("FERMIX_RUNTIME_FD", "")
    if descriptor.isdigit():
        with contextlib.suppress(OSError):  # a variable left over from somewhere else
            os.set_inheritable(int(descriptor), False)


_make_private()
