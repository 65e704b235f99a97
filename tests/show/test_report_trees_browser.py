"""The trees of a report in a real browser: their roots are in view, and keys go through them."""

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import forestprune as fp

pytest.importorskip("selenium", reason="selenium is not installed")

from report_browser import browser, in_browser, narrow, open_page, panel, tip
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

__all__ = ["browser"]

pytestmark = in_browser


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """A report on a model whose trees fit on a page."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = 2 * X[:, 0] + 3 * (X[:, 1] > 0) * X[:, 2] + 0.3 * rng.normal(size=300)
    model = GradientBoostingRegressor(n_estimators=40, random_state=0).fit(X, y)
    path = fp.prune_path(model, X, y, n_alphas=20)
    file = tmp_path_factory.mktemp("few") / "report.html"
    return fp.write_report(file, path, path.select(max_nodes=60))


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A report on a model whose first tree does not fit on a page."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 4))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2]
    model = RandomForestRegressor(2, max_leaf_nodes=60, random_state=0).fit(X, y)
    path = fp.prune_path(model, X, y, n_alphas=10)
    file = tmp_path_factory.mktemp("wide") / "report.html"
    return fp.write_report(file, path, len(path) - 1)


ROOT_IN_VIEW = """
    const scroller = document.querySelectorAll(".tree .scroll")[arguments[0]];
    const root = scroller.querySelector("[role=treeitem] rect").getBoundingClientRect();
    const box = scroller.getBoundingClientRect();
    return root.left >= box.left && root.right <= box.right && root.top >= box.top;
"""


@pytest.mark.parametrize("telephone", [False, True])
def test_the_root_of_a_tree_is_in_view(browser, wide, telephone):
    with narrow(browser) if telephone else nullcontext():
        open_page(browser, wide)
        scrolls = """
            const scroller = document.querySelector(".tree .scroll");
            return scroller.scrollWidth > scroller.clientWidth;
        """
        assert browser.execute_script(scrolls)
        assert browser.execute_script(ROOT_IN_VIEW, 0)
        # Of a tree that is unfolded later, too.
        browser.execute_script(
            "for (const fold of document.querySelectorAll('.tree')) fold.open = true"
        )
        WebDriverWait(browser, 5).until(lambda it: it.execute_script(ROOT_IN_VIEW, 1))


def test_wide_trees_say_that_they_scroll_and_can_be_seen_whole(browser, wide):
    open_page(browser, wide)
    hint = browser.find_element(By.CSS_SELECTOR, ".tree .wide")
    assert hint.text.startswith("Wider than the page: it scrolls sideways.")
    hint.find_element(By.TAG_NAME, "button").click()
    fits = """
        const scroller = document.querySelector(".tree .scroll");
        return scroller.scrollWidth <= scroller.clientWidth;
    """
    WebDriverWait(browser, 5).until(lambda it: it.execute_script(fits))
    assert "scrolls" not in hint.text
    hint.find_element(By.TAG_NAME, "button").click()
    WebDriverWait(browser, 5).until(lambda it: it.execute_script(ROOT_IN_VIEW, 0))
    assert hint.text.startswith("Wider than the page")


def test_trees_that_fit_have_nothing_to_say_about_it(browser, few):
    open_page(browser, few)
    hints = browser.find_elements(By.CSS_SELECTOR, ".tree[open] .wide")
    assert hints
    assert not any(hint.is_displayed() for hint in hints)


def test_keys_go_from_node_to_node(browser, few):
    """Tab to the root, then arrow keys; what pointing shows is shown there as well."""
    open_page(browser, few)
    summary = browser.find_element(By.CSS_SELECTOR, ".tree summary")
    browser.execute_script("arguments[0].focus()", summary)

    def press(key):
        ActionChains(browser).send_keys(key).perform()
        return browser.switch_to.active_element

    before = panel(browser)
    root = press(Keys.TAB)
    assert root.get_attribute("aria-level") == "1"
    condition = root.get_attribute("aria-label")
    assert tip(browser) == condition
    drawn = "return getComputedStyle(document.activeElement.querySelector('rect')).strokeWidth"
    assert browser.execute_script(drawn) == "3px"
    left = press(Keys.ARROW_DOWN)
    assert left.get_attribute("aria-level") == "2"
    assert left.get_attribute("aria-label").startswith("left: ")
    assert tip(browser).startswith(f"✓ {condition}\n")
    right = press(Keys.ARROW_RIGHT)
    assert right.get_attribute("aria-label").startswith("right: ")
    assert tip(browser).startswith(f"✗ {condition}\n")
    assert press(Keys.ARROW_LEFT) == left
    assert press(Keys.ARROW_UP) == root
    assert panel(browser) == before  # these keys are not meant for the chart
    assert press(Keys.ESCAPE) == root
    assert tip(browser) is None


def test_every_node_can_be_reached_with_keys(browser, wide):
    open_page(browser, wide)
    reached = browser.execute_script("""
        const tree = document.querySelector("svg[role=tree]");
        const nodes = [...tree.querySelectorAll("[role=treeitem]")];
        const reached = new Set([nodes[0]]), open = [nodes[0]];
        while (open.length) {
            const from = open.pop();
            for (const key of ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home"]) {
                from.focus();
                from.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
                if (!reached.has(document.activeElement)) {
                    reached.add(document.activeElement);
                    open.push(document.activeElement);
                }
            }
        }
        return [reached.size, nodes.length];
    """)
    assert reached[0] == reached[1] > 50
    # The last one that was gone to is the one that Tab comes back to.
    stops = browser.find_element(By.CSS_SELECTOR, "svg[role=tree]")
    assert len(stops.find_elements(By.CSS_SELECTOR, "[tabindex='0']")) == 1


def test_a_node_that_is_gone_to_comes_into_view(browser, wide):
    open_page(browser, wide)
    root = browser.find_element(By.CSS_SELECTOR, "[role=treeitem]")
    browser.execute_script("arguments[0].focus()", root)
    seen = """
        const box = document.querySelector(".tree .scroll").getBoundingClientRect();
        const node = document.activeElement.querySelector("rect").getBoundingClientRect();
        const across = node.left >= box.left && node.right <= box.right;
        return across && node.top >= 0 && node.bottom <= window.innerHeight;
    """
    for _ in range(4):
        ActionChains(browser).send_keys(Keys.ARROW_DOWN).perform()
        assert browser.execute_script(seen)
        assert tip(browser) is not None
