"""The best few trees of those that are pruned, with new weights."""

from forestprune.options import Options
from forestprune.polishing.subset.best_subset import best_subset
from forestprune.polishing.tree_equations import TreeEquations
from forestprune.solve.point import Point
from forestprune.system.threads import one_blas_thread


def subset_weights(
    equations: TreeEquations, point: Point, options: Options, max_trees: int | None
) -> Point:
    """Keep at most `max_trees` trees; without that limit, each tree costs `alpha2`."""
    with one_blas_thread():
        _, gram, moments = equations.at(point)
        solution = best_subset(
            gram / equations.problem.variation,
            moments / equations.problem.variation,
            max_trees=max_trees,
            penalty=options.alpha2 if max_trees is None else 0.0,
            solver=options.solver,
            time_limit=options.time_limit,
        )
        report = {name: getattr(solution, name) for name in ("solver", "status", "gap", "seconds")}
        return equations.weighted(point, solution.weights, report)
