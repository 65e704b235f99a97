"""The curves of a report on a classifier, in a real browser."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier

import forestprune as fp

pytest.importorskip("selenium", reason="selenium is not installed")

from report_browser import browser, in_browser, narrow, open_page, panel, tip
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

__all__ = ["browser"]

pytestmark = in_browser

NAMES = np.array(["a very long name of a class, longer than there is room for", "yew", "<i>"])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    X, y = make_classification(600, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    X, y = pd.DataFrame(X, columns=list("abcde")), NAMES[y]
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X[:300], y[:300])
    small = fp.prune(model, X[:300], y[:300], max_nodes=40, X_val=X[300:450], y_val=y[300:450])
    file = tmp_path_factory.mktemp("report") / "report.html"
    return fp.write_report(file, small, X=X[450:], y=y[450:])


@pytest.fixture
def opened(browser, page):
    open_page(browser, page)
    yield browser
    complaints = [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"]
    assert not complaints


def lines(browser):
    selector = "#roc-chart polyline, #calibration-chart polyline"
    found = browser.find_elements(By.CSS_SELECTOR, selector)
    return [line.get_attribute("points") for line in found]


def test_both_models_have_curves_of_the_class_that_is_chosen(opened):
    first = lines(opened)
    assert len(first) == 4
    area = opened.find_element(By.ID, "roc-areas").text
    choice = Select(opened.find_element(By.ID, "curve-class"))
    assert len(choice.options) == 3
    choice.select_by_index(2)
    second = lines(opened)
    assert len(second) == 4
    assert all(a != b for a, b in zip(first, second, strict=True))
    assert opened.find_element(By.ID, "roc-areas").text != area
    # The keys of the choice are not those of the path.
    nodes = panel(opened)["nodes"]
    opened.find_element(By.ID, "curve-class").send_keys(Keys.ARROW_LEFT)
    assert panel(opened)["nodes"] == nodes


def test_curves_are_told_to_pointers_and_keys(opened):
    chart = opened.find_element(By.ID, "roc-chart")
    nodes = panel(opened)["nodes"]
    chart.send_keys(Keys.ARROW_RIGHT)
    assert tip(opened).startswith("this model, probability above 1\n0 % of '<i>' found")
    chart.send_keys(Keys.ARROW_RIGHT)
    assert chart.get_attribute("aria-valuenow") == "1"
    assert tip(opened) == chart.get_attribute("aria-valuetext")
    assert panel(opened)["nodes"] == nodes
    dots = opened.find_elements(By.CSS_SELECTOR, "#calibration-chart .after-dot")
    ActionChains(opened).move_to_element(dots[-1]).perform()
    assert "probability" in tip(opened)
    assert "are '<i>'" in tip(opened)
    ActionChains(opened).move_to_element(opened.find_element(By.TAG_NAME, "h1")).perform()
    assert tip(opened) is None


def test_small_screens_need_not_be_scrolled_sideways(opened):
    with narrow(opened):
        fits = "return document.documentElement.scrollWidth <= window.innerWidth"
        WebDriverWait(opened, 5).until(lambda it: it.execute_script(fits))
        inside = """
            return [...document.querySelectorAll(".unit-chart svg *")].every((each) => {
                const { left, right } = each.getBoundingClientRect();
                return left >= 0 && right <= window.innerWidth;
            });
        """
        WebDriverWait(opened, 5).until(lambda it: it.execute_script(inside))
