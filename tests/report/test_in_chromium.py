"""The page as people meet it: in a real Chromium, by eye, keyboard, phone, screen reader and printer."""

import json
import os
import shutil
from itertools import pairwise

import pytest
from report_models import bits, images, three_agents

from craftrl.report import write_report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed (on Debian: apt-get install chromium)"
)

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
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


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


def test_pictures_are_there(show):
    page = show("images")
    drawn = page.locator("img").evaluate_all("(all) => all.map((one) => [one.naturalWidth, one.alt])")
    assert len(drawn) >= 14
    assert all(width > 0 and alt for width, alt in drawn)
    assert page.locator("#time-picture circle").count() > 3
    assert page.locator("#spectra-picture rect").count() > 1


def test_spectra_are_explored_by_keyboard(show):
    page = show("bits")
    model, _ = bits()
    page.focus("#spectra-h")
    for step in list(model.trace_)[1:]:
        page.keyboard.press("ArrowDown")
        page.wait_for_function("(h) => document.querySelector('#spectra-h').value === h", arg=str(step.h))
        bars = page.locator("#spectra-picture rect:not(.shade)").count()
        assert bars == (step.spectra[0] > 0).sum()
        label = page.locator("#spectra-picture svg").get_attribute("aria-label")
        assert f"step {step.h} from state 0" in label
    page.focus("#spectra-state")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("document.querySelector('#spectra-state').value === '1'")
    shades = page.locator("#spectra-picture .shade").count()
    assert shades == sum(cluster.s_pred == 1 for cluster in model.trace_[4].clusters)
    assert "from state 1" in page.inner_text("#spectra-note")


def test_controls_change_what_is_shown(show):
    page = show("bits")
    before = page.inner_html("#time-picture")
    page.select_option("#time-agent", "agent 1")
    assert page.inner_html("#time-picture") != before
    page.select_option("#agents-h", "3")
    page.select_option("#agents-state", "1")
    assert "In state 1 at step 3, agent 0 and agent 1 differ" in page.inner_text("#agents-note")
    assert page.locator("#agents-picture tbody tr").count() == 2
    page.select_option("#states-h", "4")
    assert page.locator(".panel:visible").count() == 1
    assert page.locator(".panel:visible").get_attribute("data-h") == "4"
    page = show("agents")
    page.select_option("#spectra-pair", "</script> against B & co")
    assert "against B & co" in page.inner_text("#spectra-note")
    assert "times as often by" in page.inner_text("#agents-picture")


def test_every_number_can_be_downloaded(show, tmp_path):
    page = show("bits")
    known = json.loads(page.locator("#data").text_content())
    with page.expect_download() as download:
        page.click("[data-json]")
    download.value.save_as(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text()) == known
    for name in ("transitions", "assumptions"):
        with page.expect_download() as download:
            page.click(f"#numbers [data-csv={name}]")
        assert download.value.suggested_filename == f"{name}.csv"
        download.value.save_as(tmp_path / name)
        lines = (tmp_path / name).read_text().splitlines()
        assert lines[0] == ",".join(known["tables"][name]["columns"])
        assert len(lines) == 1 + len(known["tables"][name]["rows"])


def test_the_first_tab_stop_leads_to_the_verdict(show):
    page = show("bits")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"
    page.keyboard.press("Enter")
    page.wait_for_url("**#verdict")  # the browser follows the link in its own time
    assert page.evaluate("document.querySelector('#verdict').getBoundingClientRect().top") < 800
    levels = page.locator("h1, h2, h3").evaluate_all("(all) => all.map((one) => Number(one.tagName[1]))")
    assert levels[:2] == [1, 2]
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_on_paper(show):
    page = show("bits", "dark")
    page.set_viewport_size({"width": 720, "height": 1000})  # an A4 page less its margins
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert not page.locator("nav").is_visible()
    assert page.locator("details:not([open])").count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.f0')).fill") == "rgb(0, 114, 178)"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.pdf(format="A4").startswith(b"%PDF")
