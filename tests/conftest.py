"""How hard the tests look: compiled they draw many cases, interpreted a few small ones."""

import os

from hypothesis import HealthCheck, settings

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"

settings.register_profile(
    "forestprune",
    max_examples=25 if INTERPRETED else 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") is not None,
)
settings.load_profile("forestprune")
