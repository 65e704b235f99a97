"""Which loss a model is pruned for, by what it was trained for."""

from forestprune.forest.origin import Origin
from forestprune.loss.absolute_error import AbsoluteError
from forestprune.loss.brier import BrierScore
from forestprune.loss.gamma import GammaLoss
from forestprune.loss.huber import HuberLoss
from forestprune.loss.log_loss import BinaryLogLoss, SoftmaxLogLoss
from forestprune.loss.loss import Loss
from forestprune.loss.poisson import PoissonLoss
from forestprune.loss.quantile import QuantileLoss
from forestprune.loss.squared_error import SquaredError
from forestprune.loss.tweedie import TweedieLoss

_AS_SQUARES = (
    *("squared_error", "squared_log_error", "squared_percentage_error"),
    *("absolute_percentage_error", "pseudo_huber", "log_cosh", "fair", "lq"),
    # Of averages: what such trees hold is means, whichever loss their splits were chosen by.
    *("poisson", "gamma", "tweedie"),
)
"""Objectives of models whose raw predictions estimate y itself, for which squared error does."""

_LIGHTGBM_DELTA = 0.9
"""LightGBM's default, which its models do not always state."""


def loss_for(origin: Origin | None, *, labelled: bool) -> Loss | None:
    """Return the loss that a model is pruned for; None if none is known that y could be judged by.

    Parameters
    ----------
    origin : Origin or None
        Of the model; None if it has none.
    labelled : bool
        Whether there are targets. Without, those of the pruned model are the predictions of the
        model itself, in units of y if the loss has a link, else its raw predictions: for these
        there is always a loss.
    """
    if origin is None:
        return SquaredError()
    known = _by_identity(origin) if origin.link == "identity" else _by_link(origin)
    if labelled:
        return known
    # Of a quantile, or a median, nothing is left to estimate if it is known: it is to be met.
    return known if known is not None and known.link != "identity" else SquaredError()


def _by_identity(origin: Origin) -> Loss | None:
    """Return the loss of a model whose raw predictions are in units of y."""
    objective, params = origin.objective, origin.objective_params
    if objective in _AS_SQUARES:
        return SquaredError()
    if objective == "brier":
        return BrierScore()
    if objective == "absolute_error":
        return AbsoluteError()
    if objective == "quantile" and "level" in params:
        return QuantileLoss(params["level"])
    if objective == "huber":
        return _huber(origin)
    # Models that say nothing, from files of older versions; but not raw sums of unknown meaning.
    if objective == "unknown" and origin.response == "value":
        return SquaredError()
    return None


def _by_link(origin: Origin) -> Loss | None:
    """Return the loss of a model whose raw predictions go through a link."""
    params = origin.objective_params
    match origin.link, origin.objective:
        case "logit", "log_loss" | "cross_entropy":
            return BinaryLogLoss(params.get("sigmoid", 1.0))
        case "softmax", "log_loss":
            return SoftmaxLogLoss()
        case "log", "poisson":
            return PoissonLoss()
        case "log", "gamma":
            return GammaLoss()
        case "log", "tweedie":
            return _tweedie(params.get("power", 1.5))
    return None


def _huber(origin: Origin) -> HuberLoss:
    params = origin.objective_params
    if "delta" in params:
        return HuberLoss(params["delta"])
    if origin.library == "lightgbm":
        return HuberLoss(_LIGHTGBM_DELTA)
    # scikit-learn settles it anew in each round, by a quantile of errors.
    return HuberLoss(level=params.get("level", 0.9))


def _tweedie(power: float) -> Loss:
    """Return the loss for a power; libraries also take 1, LightGBM's and XGBoost's lowest."""
    if power == 1.0:
        return PoissonLoss()
    return GammaLoss() if power == 2.0 else TweedieLoss(power)
