"""`forestprune prune`: a model file in, a small one out."""

from pathlib import Path
from typing import Annotated

from forestprune.cli.parameters import OUTPUT, Data, Files, How, Printing, Size, taking
from forestprune.cli.pruning import Asked, make_small

OUT = (
    "Where the small model goes. Its ending says the format: .json, .ubj (XGBoost), .txt "
    "(LightGBM), .cbm, .json (CatBoost), .skops (scikit-learn), .joblib, .pkl (any), .npz (a "
    "Forest)."
)


def prune(
    files: Files,
    out: Annotated[Path, taking("FILE", OUT, "--out", "-o", panel=OUTPUT)],
    size: Size,
    how: How,
    data_options: Data,
    printing: Printing,
    report: Annotated[
        Path | None,
        taking("FILE.html", "Write a report, with the whole trade-off.", panel=OUTPUT),
    ] = None,
) -> None:
    """Prune a model to a budget, and write a model of the same class.

    Without a budget, the model that does best on the rows held out is taken.
    """
    output = printing.output()
    with output.working():
        asked = Asked(files, size, how, data_options)
        document, shown = make_small(asked, output, force=printing.force, out=out, page=report)
    output.result(document, *shown)
