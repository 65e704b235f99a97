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

    With o outputs, cell c has o directions, from c * o on.
    """
    outputs = steps.step.shape[1]
    cells = cell_weight.size
    for i in range(first, last):
        a, b = steps.offsets[i], steps.offsets[i + 1]
        bounds = steps.bounds[steps.first_bound[i] : steps.first_bound[i + 1]]
        depth = bounds.size - 2
        parent = np.empty(b - a, np.int32)
        leaves = np.empty((b - a + 1) // 2, np.int32)
        rank = 0
        for v in range(b - a):
            c = steps.left[a + v]
            if c >= 0:
                parent[c] = v
                parent[c + 1] = v
            else:
                leaves[rank] = v
                rank += 1
        level = np.empty(b - a, np.int32)
        for k in range(depth + 1):
            for v in range(bounds[k], bounds[k + 1]):
                level[v] = k
        part = np.zeros((depth, outputs, cells))
        code = codes[i]
        if leaves.size * cells <= cell.size:
            # Few leaves: add up the rows of each leaf in each cell first.
            weight = np.zeros((leaves.size, cells))
            for x in range(cell.size):
                weight[code[x], cell[x]] += row_weight[x] if row_weight.size else 1.0
            for rank in range(leaves.size):
                v = leaves[rank]
                while v > 0:
                    for o in range(outputs):
                        step = steps.step[a + v, o]
                        for j in range(cells):
                            part[level[v] - 1, o, j] += step * weight[rank, j]
                    v = parent[v]
        else:
            for x in range(cell.size):
                w = row_weight[x] if row_weight.size else 1.0
                v = leaves[code[x]]
                while v > 0:
                    for o in range(outputs):
                        part[level[v] - 1, o, cell[x]] += w * steps.step[a + v, o]
                    v = parent[v]
        rest[i, 0] = 0.0
        for k in range(1, depth + 1):
            square = (steps.reach[i, k] - steps.reach[i, k - 1]) ** 2
            known = 0.0
            for j in range(cells):
                for o in range(outputs):
                    along = part[k - 1, o, j] / np.sqrt(cell_weight[j])
                    share[i, j * outputs + o, k - 1] = along
                    known += along * along
            rest[i, k] = rest[i, k - 1] + np.sqrt(max(square - known, 0.0) + SLACK * square)
