"""R squared, RMSE and MAE are scikit-learn's, and their standard errors those of means."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from forestprune.loss import Yardstick

numbers = st.floats(-100, 100).map(lambda x: round(x, 3))


@st.composite
def predictions(draw):
    outputs, rows = draw(st.integers(1, 3)), draw(st.integers(2, 12))
    cells = st.lists(numbers, min_size=outputs * rows, max_size=outputs * rows)
    target, predicted = (np.array(draw(cells)).reshape(outputs, rows) for _ in range(2))
    weights = st.lists(st.integers(0, 4), min_size=rows, max_size=rows).filter(
        lambda given: np.count_nonzero(given) > 1
    )
    given_weights = draw(st.none() | weights)
    return target, predicted, None if given_weights is None else np.array(given_weights, float)


@given(predictions())
@settings(deadline=None)
def test_measures_are_those_of_scikit_learn(drawn):
    target, predicted, weight = drawn
    found = Yardstick(target, weight).measure(predicted)
    known = {"y_true": target.T, "y_pred": predicted.T, "sample_weight": weight}
    assert found.metrics["rmse"] == pytest.approx(root_mean_squared_error(**known))
    assert found.metrics["mae"] == pytest.approx(mean_absolute_error(**known))
    # It leaves an output that does not vary out, whatever is predicted for it.
    if all(np.ptp(row[slice(None) if weight is None else weight > 0]) for row in target):
        expected = r2_score(**known, multioutput="variance_weighted")
        assert found.score == pytest.approx(expected, rel=1e-6)


@given(predictions())
def test_rows_that_weigh_twice_are_there_twice(drawn):
    target, predicted, weight = drawn
    weight = np.ones(target.shape[1]) if weight is None else weight
    repeated = np.repeat(np.arange(weight.size), weight.astype(int))
    one, other = Yardstick(target, weight), Yardstick(target[:, repeated], None)
    a, b = one.measure(predicted), other.measure(predicted[:, repeated])
    assert a.metrics == pytest.approx(b.metrics)


def test_the_standard_error_of_a_score():
    rng = np.random.default_rng(0)
    target, predicted = rng.normal(size=(1, 200)), rng.normal(size=(1, 200))
    yardstick = Yardstick(target, None)
    squares = (target - predicted)[0] ** 2
    expected = squares.std() / np.sqrt(200) / target.var()
    assert yardstick.standard_error(squares) == pytest.approx(expected)
    # Twice all weights are no more rows, half of the rows without weight are fewer.
    assert Yardstick(target, np.full(200, 2.0)).standard_error(squares) == pytest.approx(expected)
    half = (np.arange(200) < 100).astype(float)
    expected = squares[:100].std() / np.sqrt(100) / target[0, :100].var()
    assert Yardstick(target, half).standard_error(squares) == pytest.approx(expected)


def test_a_constant_target_has_no_standard_error():
    yardstick = Yardstick(np.ones((1, 4)), None)
    assert yardstick.standard_error(np.arange(4.0)) == 0.0
    assert yardstick.measure(np.ones((1, 4))).score == 1.0
    assert yardstick.measure(np.zeros((1, 4))).score == 0.0
