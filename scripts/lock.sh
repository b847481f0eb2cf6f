#!/bin/sh
# Writes requirements/*.lock: packages pinned with hashes, for every platform. Needs uv.
#   base.lock   what the plugin needs      voice.lock   the same and dictation      dev.lock   the same and all tools of the tests
# Must not write the name of a package registry into the files.
set -eu
cd "$(dirname "$0")/.."
lock() {
  out=$1; shift
  uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
    --no-header --no-annotate --quiet "$@" pyproject.toml -o "requirements/$out.lock"
}
lock dev --all-extras --group dev
# The two smaller ones must name the same versions: the full one constrains them.
sed -e '/^    --hash/d' -e 's/ \\$//' requirements/dev.lock >requirements/constraints.tmp
lock base -c requirements/constraints.tmp
lock voice --extra voice -c requirements/constraints.tmp
rm requirements/constraints.tmp
