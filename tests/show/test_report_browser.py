"""The report in a real browser: it opens, it is drawn, it answers clicks, it prints."""

import base64

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor

import forestprune as fp

pytest.importorskip("selenium", reason="selenium is not installed")

from report_browser import browser, in_browser, narrow, open_page, panel, rows, tip
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

__all__ = ["browser"]

pytestmark = in_browser

EVIL = "<script>window.stolen = 1</script><img src=x onerror='window.stolen = 2'>"


@pytest.fixture(scope="module")
def path():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 4)), columns=[EVIL, "b", "c", "d"])
    y = 2 * X[EVIL] + 3 * (X["b"] > 0) * X["c"] + 0.3 * rng.normal(size=400)
    model = GradientBoostingRegressor(n_estimators=40, random_state=0).fit(X[:300], y[:300])
    return fp.prune_path(model, X[:300], y[:300], n_alphas=30, X_val=X[300:], y_val=y[300:])


@pytest.fixture(scope="module")
def report(path, tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    return fp.write_report(file, path, path.select(max_nodes=60))


@pytest.fixture
def opened(browser, report):
    """A browser with the report, drawn."""
    open_page(browser, report)
    yield browser
    complaints = [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"]
    assert not complaints
    assert browser.execute_script("return window.stolen") is None


def point_at(browser, place):
    """Move to where the dot of a point is, as a person would."""
    dot = browser.find_element(By.CSS_SELECTOR, f"#path-chart [data-place='{place}']")
    return ActionChains(browser).move_to_element(dot)


def click_dot(browser, place):
    point_at(browser, place).click().perform()


def test_path_is_drawn(opened, path):
    def count(selector):
        return len(opened.find_elements(By.CSS_SELECTOR, selector))

    assert count("#path-chart .dot") == len(path)
    for mark in (".diamond", ".mine", ".ring", ".curve", "polygon.band"):
        assert count(f"#path-chart {mark}") == 1
    depths = path.select(max_nodes=60).depths
    assert count("#depth-chart rect.after") == np.unique(depths).size
    assert count("#feature-chart .bar") == 2 * 4


def test_models_stand_where_their_size_and_error_are(opened, path):
    """Sizes on a logarithmic axis, larger ones to the right and larger errors higher."""
    script = """
        return [...document.querySelectorAll("#path-chart .dot")].map(
            (dot) => ["cx", "cy"].map((name) => Number(dot.getAttribute(name))));
    """
    x, y = np.array(opened.execute_script(script)).T
    trees = path.n_nodes > 0
    assert not trees.all()
    slope, start = np.polyfit(np.log(path.n_nodes[trees]), x[trees], 1)
    assert slope > 0
    assert x[trees] == pytest.approx(start + slope * np.log(path.n_nodes[trees]), abs=0.01)
    errors = 1 - path.validation.scores
    assert np.array_equal(np.argsort(np.round(errors, 9)), np.argsort(np.round(-y, 6)))


def test_a_constant_has_a_place_of_its_own(opened, path):
    """It is not at one node, the line does not go there, and the axis says 0 there."""
    script = """
        const x = (selector) => Number(document.querySelector(selector).getAttribute("cx"));
        const ticks = [...document.querySelectorAll("#path-chart .tick")];
        const zero = ticks.find((tick) => tick.textContent === "0").getAttribute("x");
        const points = document.querySelector("#path-chart .curve").getAttribute("points");
        const curve = points.split(" ").map((point) => Number(point.split(",")[0]));
        return [x("[data-place='0']"), Number(zero), curve];
    """
    assert path.n_nodes[0] == 0
    constant, zero, curve = opened.execute_script(script)
    assert constant == zero
    assert min(curve) > constant + 20
    point_at(opened, 0).perform()
    assert tip(opened).startswith("a constant: no nodes")


def test_panel_begins_with_this_model(opened, path):
    small = path.select(max_nodes=60)
    assert opened.find_element(By.ID, "panel-name").text.startswith("this model")
    assert panel(opened)["nodes"] == f"{small.n_nodes:,}"
    assert panel(opened)["trees"] == f"{small.n_trees:,}"


def test_arrow_keys_walk_along_the_line(opened, path):
    body = opened.find_element(By.TAG_NAME, "body")
    before = int(panel(opened)["nodes"].replace(",", ""))
    body.send_keys(Keys.ARROW_LEFT)
    assert int(panel(opened)["nodes"].replace(",", "")) < before
    body.send_keys(Keys.ARROW_RIGHT)
    assert int(panel(opened)["nodes"].replace(",", "")) == before
    body.send_keys(Keys.SHIFT + Keys.ARROW_LEFT)
    assert int(panel(opened)["nodes"].replace(",", "")) == before


def test_clicking_a_point_shows_it(opened, path):
    before = panel(opened)
    place = int(np.argmin(np.abs(path.n_nodes - 20)))
    click_dot(opened, place)
    assert panel(opened) != before
    assert panel(opened)["nodes"] == f"{path.n_nodes[place]:,}"
    error = float(panel(opened)["error, 1 \N{MINUS SIGN} R²"])
    assert error == pytest.approx(1 - path.validation.scores[place], rel=1e-3)
    assert opened.find_element(By.ID, "panel-call").text == f"small.path[{place}]"


def test_pointing_at_a_dot_tells_its_size(opened, path):
    assert tip(opened) is None
    place = int(np.argmin(np.abs(path.n_nodes - 20)))
    point_at(opened, place).perform()
    assert tip(opened).startswith(f"{path.n_nodes[place]:,} nodes")
    ActionChains(opened).move_to_element(opened.find_element(By.TAG_NAME, "h1")).perform()
    assert tip(opened) is None


def test_the_chart_tells_readers_of_the_screen_where_they_are(opened):
    chart = opened.find_element(By.ID, "path-chart")
    first = chart.get_attribute("aria-valuenow")
    chart.send_keys(Keys.ARROW_RIGHT)
    assert int(chart.get_attribute("aria-valuenow")) == int(first) + 1
    nodes = panel(opened)["nodes"]
    assert chart.get_attribute("aria-valuetext").startswith(f"{nodes} nodes, ")


def test_picks_are_compared(opened, path):
    before = rows(opened)
    assert before[0][0] == "full model"
    assert before[0][1] == f"{path.source.forest.n_nodes:,}"
    named = {name for row in before for name in row[0].split(", ")}
    assert {"this model", "best"} <= named
    place = int(np.argmin(np.abs(path.n_nodes - 10)))
    click_dot(opened, place)
    opened.find_element(By.ID, "keep").click()
    after = rows(opened)
    assert len(after) == len(before) + 1
    assert [str(path.n_nodes[place])] == [row[1] for row in after if row[0] == "compared"]
    opened.find_element(By.CSS_SELECTOR, "#comparison .remove button").click()
    assert [row[0] for row in rows(opened)] == [row[0] for row in before]


def test_models_of_the_table_can_be_shown_with_keys(opened, path):
    best = opened.find_element(By.XPATH, "//th/button[contains(., 'best')]")
    best.send_keys(Keys.ENTER)
    nodes = path.n_nodes[np.argmax(path.validation.scores)]
    assert panel(opened)["nodes"] == f"{nodes:,}"
    assert "best" in opened.switch_to.active_element.text


def test_keys_and_buttons_walk_along_the_line(opened):
    def nodes():
        return int(panel(opened)["nodes"].replace(",", ""))

    first = nodes()
    opened.find_element(By.ID, "larger").click()
    larger = nodes()
    assert larger > first
    opened.find_element(By.ID, "path-chart").send_keys(Keys.ARROW_LEFT)
    opened.find_element(By.ID, "path-chart").send_keys(Keys.ARROW_LEFT)
    assert nodes() < first
    while opened.find_element(By.ID, "smaller").is_enabled():
        opened.find_element(By.ID, "smaller").click()
    assert nodes() == 0


def test_nothing_is_loaded(opened):
    loaded = opened.execute_script("return performance.getEntriesByType('resource').length")
    assert loaded == 0


def test_names_are_shown_as_they_are(opened):
    listed = opened.find_element(By.CSS_SELECTOR, "#feature-chart").text
    assert "<script>" in listed
    labels = [
        node.get_attribute("aria-label")
        for node in opened.find_elements(By.CSS_SELECTOR, ".tree [role=treeitem]")
    ]
    assert any(EVIL in label for label in labels)


def test_dark_is_dark(opened):
    def colours():
        script = """
            const chart = document.querySelector("#path-chart text.title");
            return [getComputedStyle(document.body).backgroundColor, getComputedStyle(chart).fill];
        """
        return opened.execute_script(script)

    light = colours()
    feature = {"name": "prefers-color-scheme", "value": "dark"}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    dark = WebDriverWait(opened, 5).until(lambda _: colours()[1] != light[1] and colours())
    assert light == ["rgb(251, 251, 250)", "rgb(34, 38, 42)"]
    assert dark == ["rgb(21, 24, 27)", "rgb(228, 231, 234)"]


def test_small_screens_need_not_be_scrolled_sideways(opened):
    with narrow(opened):
        fits = "return document.documentElement.scrollWidth <= window.innerWidth"
        WebDriverWait(opened, 5).until(lambda it: it.execute_script(fits))


def test_all_columns_can_be_read_on_small_screens(opened):
    """Each value is in the window, with the name of its column."""
    heads = (
        "return [...document.querySelectorAll('#comparison thead th')].map((e) => e.textContent)"
    )
    names = [name for name in opened.execute_script(heads) if name][1:]
    assert len(names) >= 7
    values = [row[1:-1] for row in rows(opened)]
    script = """
        return [...document.querySelectorAll("#comparison tbody tr")].map((row) =>
            [...row.querySelectorAll("td:not(.remove)")].map((cell) => {
                const { left, right } = cell.getBoundingClientRect();
                const all = cell.scrollWidth <= cell.clientWidth;
                const inside = all && left >= 0 && right <= window.innerWidth;
                return [getComputedStyle(cell, "::before").content, cell.textContent, inside];
            }));
    """
    with narrow(opened):
        found = opened.execute_script(script)
    for row, expected in zip(found, values, strict=True):
        assert [name.strip('"') for name, _, _ in row] == names
        assert [value for _, value, _ in row] == expected
        assert all(inside for _, _, inside in row)


# Other pages


def test_a_constant_can_be_reported_on(browser, path, tmp_path):
    open_page(browser, fp.write_report(tmp_path / "constant.html", path, 0))
    assert panel(browser)["nodes"] == "0"
    script = """
        const chart = document.getElementById("path-chart");
        const x = (selector) => chart.querySelector(selector).getAttribute("cx");
        return x(".mine") === x("[data-place='0']") && x(".ring") === x(".mine");
    """
    assert browser.execute_script(script)
    assert not browser.find_element(By.ID, "smaller").is_enabled()


def test_errors_in_units_are_in_the_table(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = 1000 * (X[:, 0] + (X[:, 1] > 0) * X[:, 2]) + 100 * rng.normal(size=400)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X[:300], y[:300])
    path = fp.prune_path(model, X[:300], y[:300], n_alphas=10)
    page = fp.write_report(tmp_path / "units.html", path, 6, X=X[300:], y=y[300:])
    open_page(browser, page)
    errors = [y[300:] - each.predict(X[300:]) for each in (model, path[6])]
    rmse, mae = ([np.mean(np.abs(e) ** p) ** (1 / p) for e in errors] for p in (2, 1))
    told = panel(browser)
    assert float(told["RMSE, further rows"]) == pytest.approx(rmse[1], rel=1e-3)
    assert float(told["MAE, further rows"]) == pytest.approx(mae[1], rel=1e-3)
    change = float(told["RMSE, against full"].replace("\N{MINUS SIGN}", "-").removesuffix(" %"))
    assert change == pytest.approx(100 * (rmse[1] / rmse[0] - 1), abs=0.06)
    heads = [head.text for head in browser.find_elements(By.CSS_SELECTOR, "#comparison thead th")]
    full = dict(zip(heads, rows(browser)[0], strict=True))
    assert float(full["RMSE, further rows"]) == pytest.approx(rmse[0], rel=1e-3)


def test_it_prints_with_everything_unfolded(opened):
    folded = "return document.querySelectorAll('details:not([open])').length"
    assert opened.execute_script(folded) > 0
    opened.execute_script("""
        window.folded = null;
        matchMedia("print").addEventListener("change", () => {
            window.folded ??= document.querySelectorAll("details:not([open])").length;
        });
    """)
    printed = base64.b64decode(opened.print_page())
    assert printed.startswith(b"%PDF")
    assert opened.execute_script("return window.folded") == 0
    assert opened.execute_script(folded) > 0
