"""Which loss a model is pruned for."""

import numpy as np
import pytest

from forestprune.forest.origin import Origin, origin_from_metadata
from forestprune.loss import (
    AbsoluteError,
    BinaryLogLoss,
    BrierScore,
    GammaLoss,
    HuberLoss,
    PoissonLoss,
    QuantileLoss,
    SoftmaxLogLoss,
    SquaredError,
    TweedieLoss,
    loss_for,
)

# objective, link, what else the origin says, the loss with labels, the loss without
TABLE = [
    ("squared_error", "identity", {}, SquaredError(), SquaredError()),
    ("squared_error", "identity", {"response": "raw"}, SquaredError(), SquaredError()),
    ("squared_error", "identity", {"averages": True}, SquaredError(), SquaredError()),
    ("log_loss", "logit", {}, BinaryLogLoss(), BinaryLogLoss()),
    ("log_loss", "logit", {"sigmoid": 0.7}, BinaryLogLoss(0.7), BinaryLogLoss(0.7)),
    ("log_loss", "softmax", {}, SoftmaxLogLoss(), SoftmaxLogLoss()),
    ("cross_entropy", "logit", {}, BinaryLogLoss(), BinaryLogLoss()),
    ("brier", "identity", {"averages": True}, BrierScore(), SquaredError()),
    ("poisson", "log", {}, PoissonLoss(), PoissonLoss()),
    ("poisson", "identity", {"averages": True}, SquaredError(), SquaredError()),
    ("gamma", "log", {}, GammaLoss(), GammaLoss()),
    ("tweedie", "log", {}, TweedieLoss(1.5), TweedieLoss(1.5)),
    ("tweedie", "log", {"power": 1.2}, TweedieLoss(1.2), TweedieLoss(1.2)),
    ("tweedie", "log", {"power": 1.0}, PoissonLoss(), PoissonLoss()),
    ("tweedie", "log", {"power": 2.0}, GammaLoss(), GammaLoss()),
    ("absolute_error", "identity", {}, AbsoluteError(), SquaredError()),
    ("quantile", "identity", {"level": 0.9}, QuantileLoss(0.9), SquaredError()),
    ("quantile", "identity", {}, None, SquaredError()),
    ("quantile", "log", {"level": 0.9}, None, SquaredError()),
    ("huber", "identity", {"delta": 2.0}, HuberLoss(2.0), SquaredError()),
    ("huber", "identity", {}, HuberLoss(None, 0.9), SquaredError()),
    ("huber", "identity", {"level": 0.8}, HuberLoss(None, 0.8), SquaredError()),
    ("huber", "identity", {"library": "lightgbm"}, HuberLoss(0.9), SquaredError()),
    ("pseudo_huber", "identity", {}, SquaredError(), SquaredError()),
    ("log_cosh", "identity", {}, SquaredError(), SquaredError()),
    ("fair", "identity", {}, SquaredError(), SquaredError()),
    ("lq", "identity", {}, SquaredError(), SquaredError()),
    ("squared_log_error", "identity", {}, SquaredError(), SquaredError()),
    ("absolute_percentage_error", "identity", {}, SquaredError(), SquaredError()),
    ("squared_percentage_error", "identity", {}, SquaredError(), SquaredError()),
    ("unknown", "identity", {}, SquaredError(), SquaredError()),
    ("unknown", "identity", {"response": "raw"}, None, SquaredError()),
    ("unknown", "log", {}, None, SquaredError()),
    ("unknown", "logit", {}, None, SquaredError()),
    ("expectile", "identity", {"level": 0.3}, None, SquaredError()),
    ("hinge", "identity", {}, None, SquaredError()),
    ("squared_error", "signed_sqrt", {}, None, SquaredError()),
    ("huber", "signed_sqrt", {}, None, SquaredError()),
    ("log_loss", "identity", {}, None, SquaredError()),
    ("something new", "identity", {}, None, SquaredError()),
]


@pytest.mark.parametrize(("objective", "link", "rest", "labelled", "unlabelled"), TABLE)
def test_the_loss_of_a_model(objective, link, rest, labelled, unlabelled):
    fields = {"library": "sklearn", "model_class": "Some"}
    fields |= {key: rest[key] for key in rest if key in ("library", "averages", "response")}
    params = {key: rest[key] for key in rest if key not in fields}
    origin = Origin(**fields, link=link, objective=objective, objective_params=params)
    assert loss_for(origin, labelled=True) == labelled
    assert loss_for(origin, labelled=False) == unlabelled
    # Raw predictions are compared in the model's own link, or as they are.
    assert unlabelled.link in ("identity", link)


@pytest.mark.parametrize("labelled", [True, False])
def test_models_without_an_origin_are_judged_by_squares(labelled):
    assert loss_for(None, labelled=labelled) == SquaredError()


def test_models_of_older_files():
    for words, expected in {
        "y": SquaredError(),
        "the 0.9 quantile of y": QuantileLoss(0.9),
        "the log of the mean of y": None,
    }.items():
        origin = origin_from_metadata(
            {"library": "lightgbm", "model_class": "LGBMRegressor", "predicts": words}
        )
        assert loss_for(origin, labelled=True) == expected


@pytest.mark.parametrize("row", [row for row in TABLE if row[4].link != "identity"])
def test_own_predictions_are_targets_without_labels(row):
    loss = row[4]
    raw = np.random.default_rng(0).normal(size=(3, 8))
    target = loss.response(raw)
    loss.check_target(target)
    assert loss.values(target, raw) == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(loss.gradient(target, raw), 0.0, atol=1e-12)
