"""Trees that have nothing to do with a forest but that they keep to what its library can write."""

import numpy as np

from forestprune.forest.new_splits import NewTree, split_limits

ODD = (0.0, -0.0, 1e-40, -1e-36, 1e30, -1e30, 0.1, 1 / 3)


def stump(column=0, threshold=0.5, *, missing_left=False, left=None):
    """Return a tree of one split, by a threshold or a set of categories."""
    return NewTree(
        left=np.array([1, -1, -1]),
        feature=np.array([column, -1, -1]),
        threshold=np.array([threshold, 0.0, 0.0]),
        missing_left=np.array([missing_left, False, False]),
        value=np.array([[0.0], [-1.0], [1.0]]),
        cover=np.array([4.0, 2.0, 2.0]),
        gain=np.array([3.0, 0.0, 0.0]),
        rows=np.array([8, 4, 4]),
        left_categories={} if left is None else {0: left},
    )


def new_trees(forest, matrix, rng, *, numbers=None, depth=3):
    """Return random trees in place of some of `forest`, by number, that split rows of `matrix`."""
    limits = split_limits(forest, give_up_symmetry=True)
    numbers = range(forest.n_trees) if numbers is None else numbers
    return {number: _tree(forest, limits, number, matrix, rng, depth) for number in numbers}


def _tree(forest, limits, number, matrix, rng, depth):
    left, feature, threshold, missing_left, passed, sets = [-1], [-1], [0.0], [False], [], {}
    queue = [(0, np.arange(len(matrix)), frozenset())]
    for node, rows, above in queue:  # which grows
        passed.append(len(rows))
        columns = _columns(limits, number, above)
        # Two rows each at least: some clients divide by what passes a node.
        if len(above) >= depth + (node % 3 == 0) or len(rows) < 2 or not columns:
            continue
        for _ in range(9):  # until a split parts the rows
            j = int(rng.choice(columns))
            x, t, mine = matrix[rows, j], 0.0, None
            go = bool(rng.random() < 0.5) if limits.missing[j] == -1 else limits.missing[j] == 1
            if limits.categorical[j]:
                mine = _left_set(limits, j, x, rng)
                goes_left = np.isin(np.trunc(x), mine)
            else:
                t = _threshold(x, rng)
                goes_left = x <= t
            goes_left = np.where(np.isnan(x), go, goes_left)
            if goes_left.any() and not goes_left.all():
                break
        else:
            continue
        if mine is not None:
            sets[node] = mine
        left[node], feature[node], threshold[node], missing_left[node] = len(left), j, t, go
        for side in (rows[goes_left], rows[~goes_left]):
            queue.append((len(left), side, above | {j}))
            for column, nothing in ((left, -1), (feature, -1), (threshold, 0.0)):
                column.append(nothing)
            missing_left.append(False)
    left = np.array(left, np.int32)
    value = rng.normal(size=(left.size, forest.value.shape[1]))
    if forest.averages_distributions:
        value = rng.random(value.shape)
        value /= value.sum(axis=1, keepdims=True) if value.shape[1] > 1 else 1.0
    rows = np.array(passed, np.int64)
    return NewTree(
        left=left,
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold),
        missing_left=np.array(missing_left),
        value=value,
        cover=rows * 0.5,
        gain=np.where(left >= 0, rng.random(left.size) + 0.1, 0.0),
        rows=rows,
        left_categories=sets,
    )


def _columns(limits, number, above):
    """Return the columns that a split below splits on `above` may be on."""
    allowed = limits.usable.copy()
    if limits.columns is not None:
        allowed &= limits.columns[number]
    if limits.most_columns and len(above) == limits.most_columns:
        allowed &= np.isin(np.arange(allowed.size), list(above))
    groups = [set(group) for group in limits.interactions if above <= set(group)]
    if limits.interactions:
        allowed &= np.isin(np.arange(allowed.size), list(set().union(*groups)))
    return np.flatnonzero(allowed).tolist()


def _threshold(x, rng):
    """Return a number that a row has, one near to it, or an odd one."""
    if rng.random() < 0.2:
        return float(rng.choice(ODD))
    return float(rng.choice([0.0, *x[~np.isnan(x)]]) + rng.choice([0.0, 0.01]))


def _left_set(limits, column, x, rng):
    most = int(min(limits.max_category[column], np.nanmax(x, initial=0.0) + 2, 50))
    if limits.one_category:
        one = int(rng.integers(limits.max_category[column] - 1))
        return [code for code in range(limits.max_category[column]) if code != one]
    return np.flatnonzero(rng.random(most) < 0.5).tolist()


def probes(forest, table):
    """Return rows like those of `table` on, just above and just below thresholds, and NaN."""
    splits = np.flatnonzero(forest.left >= 0)
    if forest.category_set.size:
        splits = splits[forest.category_set[splits] < 0]
    x = np.clip(forest.threshold[splits], -1e38, 1e38)
    single = x.astype(np.float32)
    ways = [x, single]
    for towards in (-np.inf, np.inf):
        ways += [np.nextafter(x, towards), np.nextafter(single, np.float32(towards))]
    columns = np.tile(forest.feature[splits], len(ways))
    cells = np.concatenate(ways)
    if forest.input.ensure_all_finite is not True:
        coded = forest.input.known_categories | dict.fromkeys(forest.input.truncated)
        numeric = [j for j in range(forest.n_features) if j not in coded]
        columns = np.concatenate([columns, numeric])
        cells = np.concatenate([cells, np.full(len(numeric), np.nan)])
    picked = np.arange(len(cells)) % len(table)
    rows = table.iloc[picked].reset_index(drop=True) if hasattr(table, "iloc") else table[picked]
    for i, (j, cell) in enumerate(zip(columns.tolist(), cells.tolist(), strict=True)):
        if hasattr(rows, "iloc"):
            rows.iloc[i, j] = cell
        else:
            rows[i, j] = cell
    return rows
