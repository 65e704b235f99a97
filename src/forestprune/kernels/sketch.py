"""A few directions in which trees of one forest mostly agree.

Rows are put into some hundred cells, and e_c is the indicator of cell c, scaled to length 1. The
inner product of two vectors is that of their parts along these directions, which is cheap, plus
that of the rests, which Cauchy-Schwarz bounds. Bagged trees are so much alike that the rests are
small, and the bound tells which trees a change of one of them cannot have concerned.
"""

import numpy as np

from forestprune.kernels.jit import kernel

SLACK = 1e-14
"""Added, relatively, to the square of a rest, which is a difference of squares that may cancel."""


@kernel
def sketch_layers(codes, row_weight, cell, cell_weight, first, last, steps, share, rest):
    """Write share[i, c, k] = e_c . (layer k + 1 of tree i) and the reach of the rests.

    With o outputs, cell c has o directions, from c * o on. Layers beyond those that `share` has
    room for are left out: all of them is rest.
    """
    outputs = steps.step.shape[1]
    cells = cell_weight.size
    most = share.shape[2]
    for i in range(first, last):
        a, b = steps.offsets[i], steps.offsets[i + 1]
        bounds = steps.bounds[steps.first_bound[i] : steps.first_bound[i + 1]]
        layers = min(bounds.size - 2, most)
        inner = bounds[layers + 1]
        # Where rows end if the tree is cut below the last layer that counts.
        end = np.empty(b - a, np.int32)
        ends = np.empty((b - a + 1) // 2, np.int32)
        rank = 0
        for v in range(b - a):
            if v < inner:
                end[v] = v
            c = steps.left[a + v]
            if c < 0:
                ends[rank] = end[v]
                rank += 1
            elif c >= inner:
                end[c] = end[v]
                end[c + 1] = end[v]
        weight = np.zeros((inner, cells))
        if row_weight.size:
            for x in range(cell.size):
                weight[ends[codes[i, x]], cell[x]] += row_weight[x]
        else:
            for x in range(cell.size):
                weight[ends[codes[i, x]], cell[x]] += 1.0
        part = np.zeros((layers, cells, outputs))
        for k in range(layers, 0, -1):
            for v in range(bounds[k + 1] - 1, bounds[k] - 1, -1):
                c = steps.left[a + v]
                if 0 <= c < inner:
                    for j in range(cells):
                        weight[v, j] = weight[c, j] + weight[c + 1, j]
                for o in range(outputs):
                    for j in range(cells):
                        part[k - 1, j, o] += steps.step[a + v, o] * weight[v, j]
        rest[i, 0] = 0.0
        for k in range(1, bounds.size - 1):
            square = (steps.reach[i, k] - steps.reach[i, k - 1]) ** 2
            known = 0.0
            if k <= layers:
                for j in range(cells):
                    for o in range(outputs):
                        along = part[k - 1, j, o] / np.sqrt(cell_weight[j])
                        share[i, j * outputs + o, k - 1] = along
                        known += along * along
            rest[i, k] = rest[i, k - 1] + np.sqrt(max(square - known, 0.0) + SLACK * square)
