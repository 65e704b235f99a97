"""The paper's competitors (section 4), and another: ways to make a fitted tree ensemble small.

- :func:`fewer_trees`, its "Baseline": fewer bagging or boosting iterations.
- :func:`cost_complexity`: each tree pruned by itself, with one sparsity parameter for all.
- :func:`lasso`: whole trees, weighted by the LASSO.
- :func:`best_trees`, its "Best Subset Tree Selection": the best whole trees within a size limit.
- :func:`global_refinement`, which the paper does not have: all leaves fitted together, and the
  least of them merged.

They are for regression and classification, in the loss that the model is pruned for;
:func:`best_trees` is for squared error and for averages. Each returns a
:class:`~forestprune.select.path.PruningPath`, or a
:class:`~forestprune.select.pruned.PrunedForest`, as :func:`~forestprune.prune_path` and
:func:`~forestprune.prune` do, so that budgets, validation and export work the same.
"""

from forestprune.baselines.best_trees import best_trees
from forestprune.baselines.cost_complexity import cost_complexity
from forestprune.baselines.fewer_trees import fewer_trees
from forestprune.baselines.global_refinement import global_refinement
from forestprune.baselines.lasso import lasso

__all__ = ["best_trees", "cost_complexity", "fewer_trees", "global_refinement", "lasso"]
