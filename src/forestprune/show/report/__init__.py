"""One page about a pruned model, which opens anywhere: the trade-off, the trees, how to load it."""

from forestprune.show.report.write import write_report

__all__ = ["write_report"]
