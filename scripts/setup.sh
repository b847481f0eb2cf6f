#!/bin/sh
# Makes the project's own environment: setup.sh [base|voice|dev] [FOLDER]   (default: dev .venv)
# base and voice are what :AgentikInstall makes: the dependencies only, the plugin itself is run from where it lies.
# dev is for work on the project: it also installs the project (editable) and what the tests need from the system.
# Uses uv where it is present, else venv + pip.
# Must not touch anything outside FOLDER but Debian packages, and those only where it may without a question; with base
# and voice the project's own folder may be read-only.
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

# A Python that was removed or replaced by the system leaves an environment that cannot start: make it anew.
if [ -f "$venv/pyvenv.cfg" ] && ! "$venv/bin/python" -c '' 2>/dev/null; then
  say "the Python of $venv is gone: making it anew"
  rm -rf "$venv"
fi

# The stamp holds what the environment was made from: another lock (or, for dev, another place) makes it anew.
want=$(cat "$lock" scripts/setup.sh | cksum)
[ "$kind" != dev ] || want="$want $(cksum <pyproject.toml) $PWD"
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$want" ]; then
  count=$(grep -c '^[A-Za-z0-9]' "$lock")
  if command -v uv >/dev/null 2>&1; then
    say "making $venv with uv"
    [ -x "$venv/bin/python" ] || uv venv --quiet --python '>=3.11' "$venv"
    say "installing $count packages"
    uv pip sync --quiet --compile-bytecode --python "$venv/bin/python" --require-hashes "$lock"
    [ "$kind" != dev ] || uv pip install --quiet --python "$venv/bin/python" --no-deps --editable .
  else
    python=$(find_python) || { say "Python 3.11 or newer is needed and was not found (set PYTHON=/path/to/python3)" >&2; exit 1; }
    say "making $venv with $python (a minute or two the first time)"
    if [ ! -x "$venv/bin/python" ]; then
      "$python" -m venv "$venv" || { say "could not make $venv; on Debian: apt install python3-venv" >&2; exit 1; }
    fi
    # uv makes environments without pip.
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip >/dev/null
    say "installing $count packages"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
    [ "$kind" != dev ] || "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --editable .
  fi
  printf '%s' "$want" >"$stamp"
  say "$venv is ready"
fi

[ "$kind" = base ] || scripts/system_packages.sh "$kind"
