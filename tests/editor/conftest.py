"""Settings of the property tests: no time limit an example (the machine is shared)."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("shared", deadline=None)
settings.load_profile("shared")
