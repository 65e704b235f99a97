"""The report in a real browser: it opens, it is drawn, it answers clicks, it prints."""

import base64
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor

import forestprune as fp

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
REQUIRED = os.environ.get("FORESTPRUNE_BROWSER") == "required"
MISSING = "Chromium or its driver is not installed (Debian: chromium, chromium-driver)"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (BROWSER and DRIVER) and not REQUIRED, reason=MISSING),
]

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


@pytest.fixture(scope="module")
def browser():
    if not (BROWSER and DRIVER):
        pytest.fail(MISSING)
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (
        "--headless=new",
        "--no-sandbox",  # which root has to do without
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1200,1000",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, report):
    """A browser with the report, drawn."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.get(report.as_uri())
    ready = "return document.documentElement.dataset.ready === 'yes'"
    WebDriverWait(browser, 20).until(lambda it: it.execute_script(ready))
    yield browser
    complaints = [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"]
    assert not complaints
    assert browser.execute_script("return window.stolen") is None


def panel(browser):
    names = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#panel-facts dt")]
    values = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#panel-facts dd")]
    return dict(zip(names, values, strict=True))


def rows(browser):
    found = browser.find_elements(By.CSS_SELECTOR, "#comparison tbody tr")
    return [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in found]


def dots(browser):
    return browser.execute_script("""
        const chart = document.getElementById("path-chart");
        const layout = chart._fullLayout, box = chart.getBoundingClientRect();
        const trace = chart.data.find((trace) => trace.customdata);
        return trace.customdata.map((place, i) => [
            place,
            layout.xaxis.d2p(trace.x[i]) + layout.xaxis._offset,
            layout.yaxis.d2p(trace.y[i]) + layout.yaxis._offset,
            box.width, box.height,
        ]);
    """)


def click_dot(browser, place):
    """Click where the dot of a point is, as a person would."""
    _, x, y, width, height = next(dot for dot in dots(browser) if dot[0] == place)
    chart = browser.find_element(By.ID, "path-chart")
    chart.location_once_scrolled_into_view  # noqa: B018
    mouse = ActionChains(browser)
    mouse.move_to_element_with_offset(chart, round(x - width / 2), round(y - height / 2))
    mouse.click().perform()


def test_path_is_drawn(opened, path):
    points = opened.find_elements(By.CSS_SELECTOR, "#path-chart .scatterlayer .points path")
    # Every point, and marks for the full model, this one and the one that is shown.
    assert len(points) == len(path) + 3
    assert all(
        opened.find_elements(By.CSS_SELECTOR, f"#{chart} .bars path")
        for chart in ("depth-chart", "feature-chart")
    )


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
    assert opened.find_element(By.ID, "panel-call").text == f"small = path[{place}]"


def test_pointing_at_a_dot_tells_its_size(opened, path):
    place = int(np.argmin(np.abs(path.n_nodes - 20)))
    _, x, y, width, height = next(dot for dot in dots(opened) if dot[0] == place)
    chart = opened.find_element(By.ID, "path-chart")
    mouse = ActionChains(opened)
    mouse.move_to_element_with_offset(chart, round(x - width / 2), round(y - height / 2)).perform()
    found = WebDriverWait(opened, 5).until(
        lambda it: it.find_elements(By.CSS_SELECTOR, "#path-chart .hoverlayer .hovertext")
    )
    assert f"{path.n_nodes[place]:,} nodes" in found[0].text


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
    opened.find_element(By.CSS_SELECTOR, "#comparison button").click()
    assert [row[0] for row in rows(opened)] == [row[0] for row in before]


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
    assert EVIL in opened.execute_script("return document.querySelector('svg title').textContent;")


def test_dark_is_dark(opened):
    def colours():
        script = """
            const font = document.getElementById("path-chart")._fullLayout.font.color;
            return [getComputedStyle(document.body).backgroundColor, font];
        """
        return opened.execute_script(script)

    light = colours()
    feature = {"name": "prefers-color-scheme", "value": "dark"}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    dark = WebDriverWait(opened, 5).until(lambda _: colours()[1] != light[1] and colours())
    assert light == ["rgb(251, 251, 250)", "#22262a"]
    assert dark == ["rgb(21, 24, 27)", "#e4e7ea"]


def test_small_screens_need_not_be_scrolled_sideways(opened):
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        fits = "return document.documentElement.scrollWidth <= window.innerWidth"
        WebDriverWait(opened, 5).until(lambda it: it.execute_script(fits))
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


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
