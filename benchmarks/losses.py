"""Poisson, gamma, Tweedie and quantile models at a twentieth of their nodes.

    python benchmarks/losses.py [--data FOLDER] [--sets abalone ...]

Four data sets with positive targets: 60 % of the rows train and prune, 20 % choose the shrinkage,
20 % test; of more than 20,000 rows as many are drawn (seed 0). LightGBM with 200 rounds of 31
leaves and XGBoost with 200 rounds of depth 6, both with a rate of 0.05, are trained for each loss
and pruned in it to a twentieth of their nodes. The table has the loss on test rows over that of the
full model: the deviance, of quantiles the pinball loss; of quantiles also how many test rows are
below the prediction. Writes results/losses.md.
"""

import argparse
from functools import partial
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from sklearn.metrics import mean_pinball_loss, mean_tweedie_deviance
from sklearn.model_selection import train_test_split

import forestprune as fp

HERE = Path(__file__).parent
SETS = ("abalone", "bike_sharing_hour", "houses", "diamonds")
MOST_ROWS, SHARE = 20_000, 20
POWER = 1.5
DEVIANCES = {"poisson": 1.0, "gamma": 2.0, "tweedie": POWER}
LEVELS = (0.1, 0.5, 0.9)
OBJECTIVES = {"poisson": "count:poisson", "gamma": "reg:gamma", "tweedie": "reg:tweedie"}


def load(folder, name):
    frame = pd.read_csv(folder / f"{name}.csv.gz")
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    y = frame.pop("target").to_numpy(float)
    X = pd.get_dummies(frame).fillna(0).to_numpy(dtype=np.float32)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    X, X_val, y, y_val = train_test_split(X, y, test_size=0.25, random_state=0)
    return (X, y), (X_val, y_val), (X_test, y_test)


def models(loss, level):
    """Return one model of each library, not fitted."""
    common = {"n_estimators": 200, "learning_rate": 0.05, "random_state": 0, "n_jobs": 2}
    small = {"num_leaves": 31, "verbose": -1} | common
    deep = {"max_depth": 6} | common
    if loss == "quantile":
        return {
            "LightGBM": lightgbm.LGBMRegressor(objective=loss, alpha=level, **small),
            "XGBoost": xgboost.XGBRegressor(
                objective="reg:quantileerror", quantile_alpha=level, **deep
            ),
        }
    lgb, xgb = {}, {}
    if loss == "tweedie":
        lgb, xgb = {"tweedie_variance_power": POWER}, {"tweedie_variance_power": POWER}
    return {
        "LightGBM": lightgbm.LGBMRegressor(objective=loss, **lgb, **small),
        "XGBoost": xgboost.XGBRegressor(objective=OBJECTIVES[loss], **xgb, **deep),
    }


def judged(loss, level):
    if loss == "quantile":
        return partial(mean_pinball_loss, alpha=level)
    return partial(mean_tweedie_deviance, power=DEVIANCES[loss])


def run(folder, sets):
    rows = []
    tasks = [(loss, np.nan) for loss in DEVIANCES] + [("quantile", level) for level in LEVELS]
    for name in sets:
        (X, y), (X_val, y_val), (X_test, y_test) = load(folder, name)
        for loss, level in tasks:
            measure = judged(loss, level)
            for library, model in models(loss, level).items():
                model.fit(X, y)
                nodes = fp.Forest.from_model(model).n_nodes
                small = fp.prune(model, X, y, max_nodes=nodes // SHARE, X_val=X_val, y_val=y_val)
                full, pruned = (m.predict(X_test) for m in (model, small.to_native()))
                row = {
                    "data": name,
                    "loss": loss if np.isnan(level) else f"{loss} {level:g}",
                    "library": library,
                    "nodes": nodes,
                    "kept": small.n_nodes,
                    "full": measure(y_test, full),
                    "pruned": measure(y_test, pruned),
                    "below": np.nan if np.isnan(level) else 100 * (y_test <= full).mean(),
                    "below_pruned": np.nan if np.isnan(level) else 100 * (y_test <= pruned).mean(),
                }
                rows.append(row | {"ratio": row["pruned"] / row["full"]})
                print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def report(found):
    """Return the tables as text."""
    lines = [
        "# Other losses at a twentieth of the nodes",
        "",
        "By `python benchmarks/losses.py`, whose first lines say how. Test loss of the pruned "
        "model over that of the full one. Of quantiles also coverage: the share of test rows below "
        "the prediction, and by how many points that is off the level, medians.",
        "",
        "| loss | median | worst | within 3 % | off the level, full | pruned |",
        "|---|---|---|---|---|---|",
    ]
    for loss, part in found.groupby("loss", sort=False):
        level = 100 * float(loss.rpartition(" ")[2]) if "quantile" in loss else np.nan
        off = [(part[name] - level).abs().median() for name in ("below", "below_pruned")]
        cover = "| - | - |" if np.isnan(level) else f"| {off[0]:.1f} | {off[1]:.1f} |"
        good = int((part.ratio <= 1.03).sum())
        lines.append(
            f"| {loss} | {part.ratio.median():.3f} | {part.ratio.max():.3f} "
            f"| {good} of {len(part)} {cover}"
        )
    lines += [
        "",
        "| data | loss | library | nodes | kept | test loss, full | pruned | ratio "
        "| % below, full | pruned |",
        "|---" * 10 + "|",
    ]
    for row in found.itertuples():
        below = "- | -" if np.isnan(row.below) else f"{row.below:.1f} | {row.below_pruned:.1f}"
        lines.append(
            f"| {row.data} | {row.loss} | {row.library} | {row.nodes:,} | {row.kept:,} "
            f"| {row.full:.4g} | {row.pruned:.4g} | {row.ratio:.3f} | {below} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    if not options.data.exists():
        raise SystemExit(f"{options.data} does not exist: say where the data sets are with --data.")
    text = report(run(options.data, options.sets))
    (HERE / "results" / "losses.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
