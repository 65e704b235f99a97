"""Mixtures of levels of symmetric trees: as in mixtures.py, with the prunings of oblivious.py.

Under a tangent rows weigh nothing, so the lowest choice of levels is the one that `oblivious.py`
finds for leaves without weight. What constraints ask of new values is left out: that can only make
the bound lower.
"""

import numpy as np

from forestprune.kernels.jit import inner, kernel
from forestprune.kernels.mixtures import begin_tree, finish_tree, free_place
from forestprune.kernels.oblivious import best_levels, count_levels, fit_cells
from forestprune.kernels.sums import FEW, sum_by


@inner
def _largest(trees):
    """Return how many leaves the largest tree has."""
    largest = 1
    for i in range(trees.depth.size):
        largest = max(largest, trees.first[i + 1] - trees.first[i])
    return largest


@inner
def _spell_out(trees, price, i, levels, total, cell, cells, scratch, adds):
    """Write what keeping some levels adds in each leaf; return what it costs."""
    penalty = price.alpha * price.cost[i, count_levels(levels)]
    if levels == 0:
        adds[:] = 0.0
        return penalty
    fit_cells(trees, price, i, levels, total, cell, cells, scratch)
    for o in range(total.shape[0]):
        for leaf in range(adds.shape[1]):
            adds[o, leaf] = cells[0, o, cell[leaf]]
        for j in range(1 << count_levels(levels)):
            penalty += price.shrinkage * (cells[0, o, j] - cells[2, o, j]) ** 2
    return penalty


@kernel
def sweep_level_mixtures(
    codes, row_weight, trees, places, price, leaf_weight, mixture, order, enough, promise
):
    """Do what `sweep_mixtures` does for levels; rows weigh nothing in `trees`."""
    outputs, size = trees.origin.shape[0], _largest(trees)
    spare, table = np.empty((3, FEW)), np.empty((4, places.step.size))
    rest, before = np.empty((outputs, size)), np.empty((outputs, size))
    after, sums = np.empty((outputs, size)), np.empty((outputs, size))
    best, cells, shapes = np.empty(size), np.empty((3, outputs, size)), np.empty((36, size))
    cell, scratch = np.empty(size, np.uint32), np.empty((2, mixture.share.shape[1]))
    for i in order:
        a, b = trees.first[i], trees.first[i + 1]
        if b - a < 2:
            continue
        weight, adds = leaf_weight[a:b], mixture.adds[:, :, a:b]
        now = begin_tree(codes[i], mixture, i, adds, weight, spare, before, sums, rest)
        levels, least = best_levels(places, trees, price, i, sums, cell, cells, shapes, table, best)
        promise[i] = now - least
        if promise[i] <= enough:
            continue
        k = free_place(mixture, i, adds, weight)
        mixture.penalty[i, k] = _spell_out(
            trees, price, i, levels, sums, cell, cells, shapes, adds[k]
        )
        finish_tree(codes[i], row_weight, mixture, i, k, adds, weight, before, rest, after, scratch)


@kernel
def lowest_levels(some, codes, trees, places, price, residual, least):
    """Write into least[i] the objective of the lowest levels of some trees, given a residual."""
    outputs, size = trees.origin.shape[0], _largest(trees)
    spare, table = np.empty((3, FEW)), np.empty((4, places.step.size))
    sums, best, cell = np.empty((outputs, size)), np.empty(size), np.empty(size, np.uint32)
    cells, shapes = np.empty((3, outputs, size)), np.empty((36, size))
    for i in some:
        leaves = trees.first[i + 1] - trees.first[i]
        for o in range(outputs):
            sum_by(codes[i], residual[o], sums[o, :leaves], spare)
        found = best_levels(places, trees, price, i, sums, cell, cells, shapes, table, best)
        least[i] = found[1]
