"""`python -m tests.bench [name...]`: every module of this package that has `run()`, or those named, in turn."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import time

import tests.bench


def main(names: list[str]) -> int:
    found = [module.name for module in pkgutil.iter_modules(tests.bench.__path__) if not module.name.startswith("_")]
    unknown = set(names) - set(found)
    if unknown:
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(found)}")
        return 2
    for name in names or found:
        run = getattr(importlib.import_module(f"tests.bench.{name}"), "run", None)
        if run is None:
            continue
        begun, load = time.monotonic(), os.getloadavg()[0]
        print(f"\n=== {name} (load before: {load:.1f} on {os.cpu_count()} cores)", flush=True)
        run()
        print(f"--- {name}: {time.monotonic() - begun:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
