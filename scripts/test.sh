#!/bin/sh
# Runs the tests side by side: test.sh PYTHON JOBS [ARGUMENTS of pytest]. At most three that fail there are run once more, alone:
# sound and floods in real time need a processor for themselves, which a shared machine does not always give.
# Must not hide anything: what was run again is named, and a second failure is a failure.
set -u
python=$1 jobs=$2
shift 2
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$python" -m pytest tests -n "$jobs" --dist loadgroup "$@" >"$out" 2>&1
code=$?
cat "$out"
[ "$code" = 1 ] || exit "$code"
again=$(sed -n 's/^\(FAILED\|ERROR\) \(tests\/[^ ]*\).*/\2/p' "$out" | sort -u)
count=$(printf '%s\n' "$again" | grep -c .)
if [ "$count" -lt 1 ] || [ "$count" -gt 3 ]; then
  exit 1
fi
printf 'run again, alone: %s\n' $again
# shellcheck disable=SC2086 -- a list of test ids, which hold no blanks
exec "$python" -m pytest $again
