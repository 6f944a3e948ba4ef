"""The documentation as a site: it builds without a warning, every link of it leads somewhere, and browsers like it."""

import os
import shutil
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("mkdocs")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; with --strict a page that is in no menu, a missing page or an unclear docstring fails."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


class Page(HTMLParser):
    """Everything that a page links to, everything that it loads, and the places that can be linked to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.ids, self.text = [], [], set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.ids |= {known[name] for name in ("id", "name") if known.get(name)}
        if tag == "a" and known.get("href"):
            self.links.append(known["href"])
        loaded = known.get("src") or (known.get("href") if tag == "link" else None)
        if loaded and known.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(loaded)

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def pages(site):
    return {path.resolve(): Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_link_and_picture_leads_somewhere(pages):
    assert len(pages) > 40
    broken = []
    for path, page in pages.items():
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                broken.append(f"{path.name}: {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                broken.append(f"{path.name}: {link} has no such place")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(pages):
    assert [load for page in pages.values() for load in page.loads if urlsplit(load).netloc] == []


def test_no_formula_is_left_as_latex(pages):
    for path, page in pages.items():
        if "api" not in path.parts and "src" not in path.parts:
            text = "".join(page.text)
            assert "\\(" not in text, path.name
            assert "$\\" not in text, path.name


def test_the_reference_has_every_public_name(site, pages):
    import craftrl
    import craftrl.envs
    import craftrl.oracles
    import craftrl.paper

    api = site / "api"
    index = "".join(pages[(api / "index.html").resolve()].text)
    for module in (craftrl, craftrl.envs, craftrl.oracles, craftrl.paper):
        assert [name for name in module.__all__ if name not in index and name != "__version__"] == []
    assert any(place.endswith("CRAFT.fit") for place in pages[(api / "craftrl.html").resolve()].ids)
    commands = "".join(pages[(site / "command-line.html").resolve()].text)
    for command in ("fit", "import", "report", "reproduce"):
        assert f"sage: craftrl {command}" in commands


def test_links_into_the_code_go_to_the_line(site, pages):
    """Algorithm 2, line by line: a link that names a function opens its source there."""
    links = pages[(site / "algorithm.html").resolve()].links
    loop = next(link for link in links if link.startswith("src/craftrl/core/craft.py.html#"))
    line = int(loop.rpartition("-")[2])
    source = (ROOT / "src/craftrl/core/craft.py").read_text().splitlines()
    assert source[line - 1].startswith("def craft(")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def served(site):
    """The site behind a web server of this machine: the search needs one."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (on Debian: apt-get install chromium)")
def test_in_chromium(served):
    """Pages are drawn without a complaint and without outside requests, on a phone too, and the search finds."""
    sync_api = pytest.importorskip("playwright.sync_api")
    complaints, asked = [], []
    with sync_api.sync_playwright() as playwright:
        rights = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=rights)
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.on("console", lambda message: complaints.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        for name in ("index", "theory", "tutorials/bits", "api/craftrl", "studies/README"):
            answer = page.goto(f"{served}{name}.html".replace("README", "index"))
            assert answer.ok, name
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto(f"{served}index.html")
        page.fill("input[name=query]", "heaviness threshold")
        page.wait_for_selector(".md-search-result__link")
        browser.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith((served, "data:", "blob:"))] == []
