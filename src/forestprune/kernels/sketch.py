"""A few directions in which trees of one forest mostly agree.

Rows are put into some hundred cells, and e_c is the indicator of cell c, scaled to length 1. The
inner product of two vectors is that of their parts along these directions, which is cheap, plus
that of the rests, which Cauchy-Schwarz bounds. Bagged trees are so much alike that the rests are
small, and the bound tells which trees a change of one of them cannot have concerned.
"""

import numpy as np

from forestprune.kernels.jit import kernel
from forestprune.kernels.nodes import leaves_of, splits_of

SLACK = 1e-14
"""Added, relatively, to the square of a rest, which is a difference of squares that may cancel."""


@kernel
def ends_at(layers, i, depth):
    """Return for each leaf of tree i its ancestor at `depth`, or itself if it lies above."""
    bounds = layers.bounds[layers.first_bound[i] : layers.first_bound[i + 1]]
    split, leaf = splits_of(layers, i), leaves_of(layers, i)
    nodes = bounds[min(depth + 1, bounds.size - 1)]
    end = np.empty(layers.offsets[i + 1] - layers.offsets[i], np.int32)
    for v in range(nodes):
        end[v] = v
    for s in range(nodes // 2, split.size):
        end[2 * s + 1] = end[split[s]]
        end[2 * s + 2] = end[split[s]]
    end_of_leaf = np.empty(leaf.size, np.int32)
    for rank in range(leaf.size):
        end_of_leaf[rank] = end[leaf[rank]]
    return end_of_leaf


@kernel
def sketch_layers(codes, row_weight, cell, cell_weight, first, last, layers, share, rest):
    """Write share[i, c, k] = e_c . (layer k + 1 of tree i) and the reach of the rests.

    With o outputs, cell c has o directions, from c * o on.
    """
    outputs = layers.step.shape[0]
    cells = cell_weight.size
    for i in range(first, last):
        a, nodes = layers.offsets[i], layers.offsets[i + 1] - layers.offsets[i]
        bounds = layers.bounds[layers.first_bound[i] : layers.first_bound[i + 1]]
        depth = bounds.size - 2
        split, leaf = splits_of(layers, i), leaves_of(layers, i)
        parent = np.empty(nodes, np.int32)
        for s in range(split.size):
            parent[2 * s + 1] = split[s]
            parent[2 * s + 2] = split[s]
        level = np.empty(nodes, np.int32)
        for k in range(depth + 1):
            for v in range(bounds[k], bounds[k + 1]):
                level[v] = k
        part = np.zeros((depth, outputs, cells))
        code = codes[i]
        if leaf.size * cells <= cell.size:
            # Few leaves: add up the rows of each node in each cell first.
            weight = np.zeros((nodes, cells))
            flat = weight.reshape(nodes * cells)
            if row_weight.size:
                for x in range(cell.size):
                    flat[leaf[code[x]] * cells + cell[x]] += row_weight[x]
            else:
                for x in range(cell.size):
                    flat[leaf[code[x]] * cells + cell[x]] += 1.0
            for v in range(nodes - 1, 0, -1):
                for o in range(outputs):
                    step = layers.step[o, a + v]
                    for j in range(cells):
                        part[level[v] - 1, o, j] += step * weight[v, j]
                for j in range(cells):
                    weight[parent[v], j] += weight[v, j]
        else:
            for x in range(cell.size):
                w = row_weight[x] if row_weight.size else 1.0
                v = leaf[code[x]]
                while v > 0:
                    for o in range(outputs):
                        part[level[v] - 1, o, cell[x]] += w * layers.step[o, a + v]
                    v = parent[v]
        rest[i, 0] = 0.0
        for k in range(1, depth + 1):
            square = (layers.reach[i, k] - layers.reach[i, k - 1]) ** 2
            known = 0.0
            for j in range(cells):
                for o in range(outputs):
                    along = part[k - 1, o, j] / np.sqrt(cell_weight[j])
                    share[i, j * outputs + o, k - 1] = along
                    known += along * along
            rest[i, k] = rest[i, k - 1] + np.sqrt(max(square - known, 0.0) + SLACK * square)
