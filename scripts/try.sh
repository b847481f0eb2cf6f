#!/bin/sh
# Opens Neovim with the plugin and the demo agent, apart from your own configuration: everything it keeps is in .try/.
# Without a terminal it prints a real run instead; the exit code is 0 only when that run did what it should.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
nvim=$(scripts/nvim.sh)
mkdir -p .try/project
[ -f .try/project/greet.py ] || cp scripts/try_example.py .try/project/greet.py
export XDG_CONFIG_HOME="$root/.try/config" XDG_DATA_HOME="$root/.try/data" XDG_STATE_HOME="$root/.try/state"
export XDG_CACHE_HOME="$root/.try/cache" AGENTIK_HOME="$root/.try/agentik" AGENTIK_PYTHON="$root/.venv/bin/python"
cd .try/project
if [ -t 0 ] && [ -t 1 ]; then
  exec "$nvim" -u "$root/scripts/try.lua" -i NONE -n greet.py
fi
export AGENTIK_DEMO_RATE="${AGENTIK_DEMO_RATE:-120}"
exec "$nvim" --headless -u "$root/scripts/try.lua" -i NONE -n -c "luafile $root/scripts/try_run.lua" greet.py
