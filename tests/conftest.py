"""How hard the tests look: compiled they draw many cases, interpreted a few small ones."""

import os

from hypothesis import HealthCheck, settings

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"

# Interpreted, a kernel takes a thousand times as long. What is about the kernels themselves is run
# on small cases; what goes through them from the outside is left to the compiled run.
collect_ignore = []
if INTERPRETED:
    collect_ignore += [
        "test_api.py",
        "test_baselines.py",
        "test_catboost.py",
        "test_cli.py",
        "test_cli_cautions.py",
        "test_damaged_files.py",
        "test_demo.py",
        "test_estimators.py",
        "test_examples.py",
        "test_lightgbm.py",
        "test_model_files.py",
        "test_pages.py",
        "test_paper_studies.py",
        "test_paper_experiments.py",
        "test_path.py",
        "test_plotting.py",
        "test_report.py",
        "test_report_browser.py",
        "test_search.py",
        "test_sklearn_hist.py",
        "test_subset.py",
        "test_subtree_rule.py",
        "test_text.py",
        "test_xgboost.py",
    ]

settings.register_profile(
    "forestprune",
    max_examples=25 if INTERPRETED else 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") is not None,
)
settings.load_profile("forestprune")
