"""The process that runs the built-in model: llama.cpp's own server on loopback, nothing else.

Started as `fermix _local-model`, never patched by gevent. A crash or a full memory here costs
one answer and not the daemon.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

from fermix.errors import FermixError

KEY_VARIABLE = "FERMIX_LOCAL_MODEL_KEY"
"""The key clients must show; in the environment, since anyone may read a command line."""
_TEMPERATURE = 0.1
_TOP_P = 0.9
_REPEAT_PENALTY = 1.07
_DRY_MULTIPLIER = 0.8
"""Measured with SmolLM2-135M: warmer it invents more, without the last two it runs in circles, and
with a stronger penalty it avoids the words of the question and answers wrong."""


def main(words: Sequence[str]) -> int:
    """Load the model, write the port into the report file, serve until SIGTERM.

    1 and one line on stderr when it cannot; the daemon shows that line.
    """
    options = _options(words)
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
    # Ctrl-C in the terminal of a daemon started there is the daemon's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    key = os.environ.pop(KEY_VARIABLE, "")
    if not key:
        sys.stderr.write(f"{KEY_VARIABLE} is not set.\n")
        return 1
    try:
        address = _serve(options, key)
    except FermixError as error:
        sys.stderr.write(f"{error.message} {error.hint or ''}\n")
        return 1
    except Exception as error:  # the process ends with it; llama.cpp raises bare RuntimeErrors
        sys.stderr.write(f"The built-in model did not load: {error}\n")
        return 1
    _report(options.report, urlsplit(address).port or 0)
    while True:
        signal.pause()


def _serve(options: argparse.Namespace, key: str) -> str:
    """Start the server's own threads; its address once it answers."""
    from fermix.providers.local_files import LocalFiles, find, find_runtime

    files = find() if options.model is None else LocalFiles(find_runtime(), options.model)
    if files.runtime_path is not None:
        sys.path.insert(0, str(files.runtime_path))
    # By name, so that freezing does not pull its 100 MB into the program: they are a segment of their own.
    xllamacpp = import_module("xllamacpp")

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(files.model_path)
    parameters.n_ctx = options.context
    parameters.n_parallel = 1
    parameters.n_gpu_layers = 0
    parameters.api_keys = [key]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.cache_ram_mib = 0
    parameters.warmup = False
    parameters.verbosity = 1
    parameters.n_threads_http = 2
    for computing, threads in (
        (parameters.cpuparams, options.threads),
        (parameters.cpuparams_batch, options.batch_threads),
    ):
        computing.n_threads = threads
        computing.poll = 0  # the default spins for the next piece of work
    parameters.sampling.temp = _TEMPERATURE
    parameters.sampling.top_p = _TOP_P
    parameters.sampling.penalty_repeat = _REPEAT_PENALTY
    parameters.sampling.dry_multiplier = _DRY_MULTIPLIER
    server = xllamacpp.Server(parameters)
    _server.append(server)
    return str(server.listening_address)


_server: list[object] = []
"""Kept for the life of the process: a collected server stops answering."""


def _report(path: Path, port: int) -> None:
    """Write the port whole or not at all."""
    half = path.with_suffix(".new")
    half.write_text(f"{port}\n")
    half.replace(path)


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fermix _local-model")
    parser.add_argument(
        "--report", type=Path, required=True, help="file that gets the port once it answers"
    )
    parser.add_argument("--model", type=Path, help="GGUF file; left out, the one that came with fermix")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch-threads", type=int, default=1)
    return parser.parse_args(words)
