"""Pictures of pruned forests. Axes in, Axes out; matplotlib is imported when one is drawn."""

from forestprune.plotting.depths import plot_depths
from forestprune.plotting.importance import plot_importance
from forestprune.plotting.path import plot_path
from forestprune.plotting.trees import plot_forest

__all__ = ["plot_depths", "plot_forest", "plot_importance", "plot_path"]
