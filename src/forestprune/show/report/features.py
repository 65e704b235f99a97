"""Which features a model used, and which it still uses."""

from typing import Any

import numpy as np

from forestprune.forest.forest import Forest
from forestprune.show.plotting.importance import use_of_features
from forestprune.show.plotting.look import short_names, shortened
from forestprune.text.names import column_names

MAX_BARS, MAX_NAMES = 20, 300
"""Features in the chart, and in the list of those that are gone."""

LETTERS, LONGEST = 30, 200
"""Letters of a name in the chart, and where there is more room."""


def feature_summary(full: Forest, small: Forest) -> dict[str, Any]:
    """Return how often features are split on, before and after, and which are gone."""
    before = use_of_features(full, "splits").astype(np.int64)
    after = use_of_features(small, "splits").astype(np.int64)
    ranked = np.lexsort((-before, -after))
    used = [int(column) for column in ranked if before[column] or after[column]]
    shown = used[:MAX_BARS]
    names = [shortened(name, LONGEST) for name in column_names(full)]
    short = short_names(full, shown, LETTERS)
    gone = [column for column in used if not after[column]]
    return {
        "before": int(np.count_nonzero(before)),
        "after": int(np.count_nonzero(after)),
        "splits_before": int(before.sum()),
        "splits_after": int(after.sum()),
        "thresholds_before": full.n_thresholds,
        "thresholds_after": small.n_thresholds,
        "shown": [
            {
                "name": names[column],
                "short": short[column],
                "before": int(before[column]),
                "after": int(after[column]),
                "share_before": float(before[column] / (before.sum() or 1)),
                "share_after": float(after[column] / (after.sum() or 1)),
            }
            for column in shown
        ],
        "gone": [names[column] for column in gone[:MAX_NAMES]],
        "gone_not_listed": max(0, len(gone) - MAX_NAMES),
    }
