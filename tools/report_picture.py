"""Take the picture of a report that README shows, in headless Chromium.

make demo
python tools/report_picture.py build/demo/report.html docs/screenshots/report.png
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

WINDOW = (1180, 960)
WIDTH = 860
"""Pixels of the picture that is kept."""


def main(report: Path, picture: Path) -> None:
    """Open `report`, and save what one sees first, reduced, as `picture`."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        size = dict(zip(("width", "height"), WINDOW, strict=True))
        metrics = {**size, "deviceScaleFactor": 2, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        driver.get(report.resolve().as_uri())
        ready = "return document.documentElement.dataset.ready === 'yes'"
        WebDriverWait(driver, 20).until(lambda it: it.execute_script(ready))
        shot = Image.open(io.BytesIO(driver.get_screenshot_as_png()))
    finally:
        driver.quit()
    height = round(WIDTH * shot.height / shot.width)
    reduced = shot.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
    reduced.quantize(255, Image.Quantize.MAXCOVERAGE).save(picture, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
