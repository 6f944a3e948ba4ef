"""The page as people meet it: in a real Chromium, by eye, keyboard, phone, screen reader and printer."""

import os
import shutil
from itertools import pairwise

import pytest
from report_models import bits, images, three_agents

from craftrl.report import write_report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (on Debian: apt-get install chromium)"),
]
SIZES = {"light": ("light", 1180), "dark": ("dark", 1180), "phone": ("light", 390)}


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        rights = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium has no sandbox for root
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=rights)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Three reports: bits with data, images with data, three agents without."""
    place = tmp_path_factory.mktemp("pages")
    model, tau = bits()
    write_report(model, place / "bits.html", tau, n_resamples=0)
    video, frames = images()
    write_report(video, place / "images.html", frames, n_resamples=0)
    write_report(three_agents()[0], place / "agents.html")
    return place


@pytest.fixture
def show(browser, pages):
    """Opens a report; at the end, nothing was complained of and nothing was asked of any network."""
    opened, complaints, asked = [], [], []

    def open_page(name, size="light"):
        scheme, width = SIZES[size]
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((pages / f"{name}.html").as_uri())
        opened.append(page)
        return page

    yield open_page
    for page in opened:
        page.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize(
    ("name", "size"),
    [("bits", "dark"), ("bits", "phone"), ("images", "light"), ("images", "phone"), ("agents", "dark")],
)
def test_axe_finds_no_serious_fault(show, name, size):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = show(name, size)
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    found = axe.run(page).response["violations"]
    assert [f"{fault['id']}: {fault['nodes'][0]['html']}" for fault in found if fault["impact"] != "minor"] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_pictures_are_there_and_files_are_handed_out(show, tmp_path):
    page = show("images")
    drawn = page.locator("img").evaluate_all("(all) => all.map((one) => [one.naturalWidth, one.alt])")
    assert len(drawn) >= 14
    assert all(width > 0 and alt for width, alt in drawn)
    assert page.locator("#time circle").count() > 3
    assert page.locator("#spectra rect").count() > 1
    with page.expect_download() as download:
        page.click("#numbers a[download='visits.csv']")
    download.value.save_as(tmp_path / "visits.csv")
    assert (tmp_path / "visits.csv").read_text().startswith("h,state,visits of agent 0,visits of agent 1\n")


def test_by_keyboard(show):
    page = show("bits")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"
    page.keyboard.press("Enter")
    page.wait_for_url("**#verdict")  # the browser follows the link in its own time
    assert page.evaluate("document.querySelector('#verdict').getBoundingClientRect().top") < 800
    levels = page.locator("h1, h2, h3").evaluate_all("(all) => all.map((one) => Number(one.tagName[1]))")
    assert levels[:2] == [1, 2]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    closed = page.locator("#spectra details:not([open])").first
    closed.locator("summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("#spectra details[open] svg:visible").count() >= 3  # steps 1 and 2


def test_on_paper(show):
    page = show("bits", "dark")
    page.set_viewport_size({"width": 720, "height": 1000})  # an A4 page less its margins
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.locator("#spectra svg").count() == page.locator("#spectra svg:visible").count()  # all is unfolded
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.f0')).fill") == "rgb(0, 114, 178)"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.pdf(format="A4").startswith(b"%PDF")
