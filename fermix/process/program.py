"""How this very fermix is run again, frozen or from source."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import fermix


def own_command(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The words that start this program; arguments come behind them."""
    if launcher := environment.get("FERMIX_EXE"):
        return (launcher,)
    return (sys.executable,) if getattr(sys, "frozen", False) else (sys.executable, "-m", "fermix")


def own_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What `own_command` needs in its environment to work from any folder; nothing when frozen."""
    if environment.get("FERMIX_EXE") or getattr(sys, "frozen", False):
        return {}
    # `-m fermix` finds a checkout by the folder it is started in.
    checkout = str(Path(fermix.__file__).resolve().parent.parent)
    return {"PYTHONPATH": os.pathsep.join(filter(None, (checkout, environment.get("PYTHONPATH"))))}
