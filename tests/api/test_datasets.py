import sys

import numpy as np
import pytest

import forestprune as fp


def test_wine_quality():
    wine = fp.load_wine_quality()
    assert wine.data.shape == (6497, 11)
    assert wine.target.shape == (6497,)
    assert len(wine.feature_names) == 11
    assert wine.feature_names[-1] == "alcohol"
    assert set(np.unique(wine.target)) == set(range(3, 10))
    assert "CC BY 4.0" in wine.DESCR
    frame = fp.load_wine_quality(as_frame=True)
    assert list(frame.data.columns) == wine.feature_names
    np.testing.assert_array_equal(frame.data, wine.data)
    np.testing.assert_array_equal(frame.target, wine.target)


def test_a_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        fp.load_wine_quality(as_frame=True)
