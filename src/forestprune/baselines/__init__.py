"""The paper's competitors (section 4): other ways to make a fitted tree ensemble small.

- :func:`fewer_trees`, its "Baseline": fewer bagging or boosting iterations.
- :func:`cost_complexity`: each tree pruned by itself, with one sparsity parameter for all.
- :func:`lasso`: whole trees, weighted by the LASSO.
- :func:`best_trees`, its "Best Subset Tree Selection": the best whole trees within a size limit.

Each returns a :class:`~forestprune.select.path.PruningPath`, or a
:class:`~forestprune.select.pruned.PrunedForest`, as :func:`~forestprune.prune_path` and
:func:`~forestprune.prune` do, so that budgets, validation and export work the same.
"""

from forestprune.baselines.best_trees import best_trees
from forestprune.baselines.cost_complexity import cost_complexity
from forestprune.baselines.fewer_trees import fewer_trees
from forestprune.baselines.lasso import lasso

__all__ = ["best_trees", "cost_complexity", "fewer_trees", "lasso"]
