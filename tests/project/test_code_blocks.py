"""Every Python block in README and docs runs as written, top to bottom of its page, in an empty folder."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALL_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [page for page in ALL_PAGES if "```python" in page.read_text()]


@pytest.fixture(autouse=True)
def _one_torch_thread():
    """On a busy machine two threads of a small network spend their time waiting for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for skipped, block in re.findall(r"(<!-- not run: [^\n]*-->\n)?```python\n(.*?)```", page.read_text(), flags=re.S):
        if not skipped and not re.search(r"\.\.\.[,)]", block):  # with dots it is a signature, not a programme
            exec(compile(block, str(page), "exec"), namespace)
