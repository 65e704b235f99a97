"""Pictures of pruned forests. Axes in, Axes out; matplotlib is imported when one is drawn."""

from forestprune.show.plotting.depths import plot_depths
from forestprune.show.plotting.importance import plot_importance
from forestprune.show.plotting.path import plot_path
from forestprune.show.plotting.trees import plot_forest

__all__ = ["plot_depths", "plot_forest", "plot_importance", "plot_path"]
