"""What is run: `effort` says how many cases are drawn, `long` and `sampled` what can wait."""

import os
from collections import Counter

import pytest
from effort import EXAMPLES, INTERPRETED
from hypothesis import HealthCheck, settings

# What is about the kernels themselves is run interpreted too; what goes through them from the
# outside is left to the compiled run.
collect_ignore = []
if INTERPRETED:
    collect_ignore += ["api", "baselines", "benchmarks", "cli", "docs", "select", "show"]
    collect_ignore += [
        f"interop/test_{name}.py"
        for name in (
            *("catboost", "catboost_categories", "catboost_classifiers", "catboost_losses"),
            *("clients", "constraints", "damaged_files", "lightgbm"),
            *("model_files", "new_splits", "objectives", "pipelines", "sklearn_hist", "xgboost"),
        )
    ]
    collect_ignore += ["polishing/test_subset.py", "solve/test_local_search.py"]
    collect_ignore += ["solve/test_subtree_rule.py"]

settings.register_profile(
    "forestprune",
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") is not None,
)
settings.load_profile("forestprune")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Let all but each n-th case of a test that is `sampled(n)` wait for `make test-all`."""
    seen = Counter()
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None:
            test = item.nodeid.partition("[")[0]
            if seen[test] % marker.args[0]:
                item.add_marker(pytest.mark.long)
            seen[test] += 1
