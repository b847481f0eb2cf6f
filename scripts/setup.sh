#!/bin/sh
# Makes the project's own environment: setup.sh [base|voice|dev] [FOLDER]   (default: dev .venv)
# Uses uv where it is present, else venv + pip; for "dev" it also looks for what the tests need from the system.
# Must not touch anything outside FOLDER but Debian packages, and those only where it may without a question.
set -eu
cd "$(dirname "$0")/.."
kind=${1:-dev}
venv=${2:-.venv}
lock=requirements/$kind.lock
stamp=$venv/.agentik-$kind

say() { printf 'agentik setup: %s\n' "$*"; }

find_python() {
  for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  return 1
}

# The stamp holds what the environment was made from: another lock or another place makes it anew.
want=$(cat "$lock" pyproject.toml scripts/setup.sh | cksum; pwd)
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$want" ]; then
  if command -v uv >/dev/null 2>&1; then
    say "making $venv with uv"
    [ -x "$venv/bin/python" ] || uv venv --quiet --python '>=3.11' "$venv"
    uv pip sync --quiet --python "$venv/bin/python" --require-hashes "$lock"
    uv pip install --quiet --python "$venv/bin/python" --no-deps --editable .
  else
    python=$(find_python) || { say "Python 3.11 or newer is needed and was not found (set PYTHON=/path/to/python3)" >&2; exit 1; }
    say "making $venv with $python (a minute or two the first time)"
    if [ ! -x "$venv/bin/python" ]; then
      "$python" -m venv "$venv" || { say "could not make $venv; on Debian: apt install python3-venv" >&2; exit 1; }
    fi
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --editable .
  fi
  printf '%s' "$want" >"$stamp"
fi

[ "$kind" = base ] || scripts/system_packages.sh "$kind"
