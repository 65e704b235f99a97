"""Nodes whose rows are in bins, as Hypothesis draws them."""

from dataclasses import dataclass

import naive_splits
import numpy as np
from hypothesis import strategies as st
from naive_splits import NUMERIC, ONE_RIGHT, SETS

from forestprune import kernels
from forestprune.kernels.records import MOST_BINS, BinnedColumns, SplitPrice
from forestprune.polishing.split.tree import UNBOUNDED

NEXT_TO_NOTHING = 1e-9


@dataclass
class NodeCase:
    """Rows of one node in bins, what they ask for, and what splits are worth."""

    about: BinnedColumns
    bins: np.ndarray  # (n_columns, n)
    asked: np.ndarray  # (n_outputs, n)
    weight: np.ndarray  # (n,)
    price: SplitPrice
    ends: tuple[np.ndarray, np.ndarray]

    @property
    def columns(self):
        return np.arange(len(self.bins))

    @property
    def total(self):
        return np.append(self.asked.sum(axis=1), self.weight.sum())

    def sums(self):
        """Return what rows ask for by bins, added up the slow way."""
        out = np.zeros((self.about.first[-1], len(self.asked) + 1))
        for f, column in enumerate(self.bins):
            for j, b in enumerate(column):
                out[self.about.first[f] + b] += [*self.asked[:, j], self.weight[j]]
        return out

    def best(self):
        """Return what the kernel finds: gain, column, border, and the bins that go left."""
        goes_left = np.zeros(MOST_BINS, bool)
        gain, column, border = kernels.best_split(
            self.columns, self.about, self.sums(), self.total, self.price, *self.ends, goes_left
        )
        return gain, column, border, goes_left

    def gain(self, column, goes_left):
        """Return what the loss falls by at a split, the slow way."""
        return naive_splits.gain_of(
            self.bins[column],
            self.asked,
            self.weight,
            set(np.flatnonzero(goes_left)),
            self.price,
            int(self.about.sign[column]),
            self.ends if self.ends[0].size else None,
        )


@st.composite
def columns(draw, kinds=(NUMERIC, SETS, ONE_RIGHT), most=6):
    """Draw what splits on some binned columns may be."""
    n = draw(st.integers(1, 3))
    kind = draw(st.lists(st.sampled_from(kinds), min_size=n, max_size=n))
    counts = draw(st.lists(st.integers(2, most), min_size=n, max_size=n))
    missing = [draw(st.integers(-2, 1)) if each == NUMERIC else -2 for each in kind]
    return BinnedColumns(
        first=np.cumsum([0, *counts]),
        kind=np.array(kind, np.int8),
        sign=np.array([draw(st.integers(-1, 1)) * (each == NUMERIC) for each in kind], np.int8),
        missing=np.array(missing, np.int8),
    )


@st.composite
def node_cases(draw, kinds=(NUMERIC, SETS, ONE_RIGHT), linear=False):
    """Draw the rows of a node; bins without rows, rows that weigh nothing, and ties among them."""
    about = draw(columns(kinds))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, outputs = draw(st.integers(1, 14)), 1 if linear else draw(st.integers(1, 3))
    counts = np.diff(about.first)
    bins = np.array([rng.integers(0, count, n) for count in counts], np.uint8)
    if draw(st.booleans()):
        bins[:] = np.minimum(bins, rng.integers(0, counts, len(counts))[:, np.newaxis])
    asked = rng.integers(-3, 4, (outputs, n)) * 1.0 if draw(st.booleans()) else None
    asked = rng.normal(size=(outputs, n)) if asked is None else asked
    weight = rng.choice([0.25, 0.5, 1.0, 2.0], n) if draw(st.booleans()) else np.ones(n)
    idle = rng.random(n) < draw(st.sampled_from([0.0, 0.3]))
    asked[:, idle], weight[idle] = 0.0, 0.0
    ends = UNBOUNDED
    if not linear and draw(st.booleans()):
        ends = tuple(np.sort(rng.normal(size=(2, outputs)), axis=0))
        ends = (ends[0], np.where(rng.random(outputs) < 0.3, np.inf, ends[1]))
    price = SplitPrice(
        0.0 if linear else draw(st.sampled_from([0.0, 0.5, 10.0])),
        draw(st.sampled_from([NEXT_TO_NOTHING, 1.0, 2.5])),
        linear,
    )
    return NodeCase(about, bins, asked, weight, price, ends)
