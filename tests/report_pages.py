"""Reports taken apart: their elements, their texts, and the data of their charts."""

import json
import re
from html.parser import HTMLParser

import catboost
import lightgbm
import xgboost
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forestprune as fp

MODELS = {
    "XGBRegressor": (xgboost.XGBRegressor(n_estimators=5), (".json", ".ubj", ".joblib")),
    "LGBMRegressor": (lightgbm.LGBMRegressor(n_estimators=5, verbose=-1), (".txt", ".pkl")),
    "CatBoostRegressor": (
        catboost.CatBoostRegressor(iterations=5, verbose=False, allow_writing_files=False),
        (".cbm", ".json", ".pickle"),
    ),
    "RandomForestRegressor": (RandomForestRegressor(5, max_depth=4), (".joblib", ".skops")),
    "HistGradientBoostingRegressor": (
        HistGradientBoostingRegressor(max_iter=5),
        (".pkl", ".skops"),
    ),
    "Pipeline": (
        make_pipeline(StandardScaler(), RandomForestRegressor(5, max_depth=4)),
        (".joblib",),
    ),
}
"""Models, and the endings of files that they can be saved to."""


class Page(HTMLParser):
    """A page taken apart: its elements, and what stands in them."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.inside = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.inside.pop()

    def handle_data(self, text):
        if not self.inside:
            self.texts.append(text)

    @property
    def tags(self):
        return [tag for tag, _ in self.elements]

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def written(tmp_path, *arguments, **options):
    return fp.write_report(tmp_path / "report.html", *arguments, **options).read_text("utf-8")


def data_in(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
