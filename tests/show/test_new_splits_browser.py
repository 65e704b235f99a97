"""New splits of a report in a real browser: seen, told, and no wider than a telephone."""

import pytest
from resplit import HELD_OUT, polished

import forestprune as fp

pytest.importorskip("selenium", reason="selenium is not installed")

from report_browser import browser, in_browser, narrow, open_page, panel
from selenium.webdriver.common.by import By

__all__ = ["browser"]

pytestmark = in_browser


@pytest.fixture(scope="module")
def small():
    return polished(max_nodes=60, **HELD_OUT)


@pytest.fixture(scope="module")
def page(small, tmp_path_factory):
    return fp.write_report(tmp_path_factory.mktemp("new") / "report.html", small)


def test_new_splits_are_seen_and_told(browser, page, small):
    open_page(browser, page)
    triangles = browser.find_elements(By.CSS_SELECTOR, "#path-chart path.dot.resplit")
    assert len(triangles) == (small.path.n_new_splits > 0).sum()
    assert panel(browser)["new splits"] == f"{small.n_new_splits} of {small.n_splits}"
    labels = [
        node.get_attribute("aria-label")
        for node in browser.find_elements(By.CSS_SELECTOR, "[role=treeitem]:has(rect.new)")
    ]
    assert len(labels) == small.n_new_splits
    assert all(label.endswith("(new split)") for label in labels)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_frames_stand_out_in_every_light_and_fit_a_telephone(browser, page, scheme):
    with narrow(browser):
        open_page(browser, page)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        frame = browser.find_element(By.CSS_SELECTOR, "rect.new")
        assert frame.value_of_css_property("stroke") == "rgb(34, 38, 42)"  # its ground is pale
        legend = browser.find_element(By.CSS_SELECTOR, ".legend .new-mark")
        assert legend.is_displayed()
