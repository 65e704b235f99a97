"""A real browser, and what a report shows in it."""

import os
import shutil
from contextlib import contextmanager

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
REQUIRED = os.environ.get("FORESTPRUNE_BROWSER") == "required"
MISSING = "Chromium or its driver is not installed (Debian: chromium, chromium-driver)"

in_browser = [
    pytest.mark.long,
    pytest.mark.skipif(not (BROWSER and DRIVER) and not REQUIRED, reason=MISSING),
]
"""Marks of tests that need one."""


@pytest.fixture(scope="module")
def browser():
    """Chromium, without a window."""
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


def open_page(browser, page):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.get(page.as_uri())
    ready = "return document.documentElement.dataset.ready === 'yes'"
    WebDriverWait(browser, 20).until(lambda it: it.execute_script(ready))


@contextmanager
def narrow(browser):
    """A telephone's screen."""
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def panel(browser):
    names = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#panel-facts dt")]
    values = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#panel-facts dd")]
    return dict(zip(names, values, strict=True))


def rows(browser):
    found = browser.find_elements(By.CSS_SELECTOR, "#comparison tbody tr")
    return [[cell.text for cell in row.find_elements(By.CSS_SELECTOR, "th, td")] for row in found]


def tip(browser):
    """What the box says that shows up where one points, or None."""
    box = browser.find_element(By.ID, "tip")
    return box.text if box.is_displayed() else None
