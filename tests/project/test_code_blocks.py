"""Every Python block in README and docs runs as written, top to bottom of its page, in an empty folder.

In tutorials the commands run too, and everything that is printed has to be shown (`pages` says how).
"""

import copy
import hashlib
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from craftrl import CRAFT, NeuralOracle, Training
from pages import blocks, check, commands, run_python, run_tutorial

ROOT = Path(__file__).parents[2]
ALL_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [page for page in ALL_PAGES if "```python" in page.read_text()]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))


@pytest.fixture(autouse=True)
def _one_torch_thread():
    """On a busy machine two threads of a small network spend their time waiting for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="module")
def _no_video_is_learned_twice():
    """README and the tutorial on videos fit one network to the same frames: the second fit is given the first's result.

    What is written or encoded afterwards is each page's own. A fit is the same if the parameters are, apart from the
    folder of checkpoints, and every byte of the data.
    """
    known: dict[str, CRAFT] = {}
    learn = CRAFT._learn

    def learn_once(model, data, start, tested):
        if not isinstance(model.oracle, NeuralOracle) or len(data.tau.obs_shape) != 3:
            return learn(model, data, start, tested)
        key = question(model, data, start, tested)
        if key not in known:
            known[key] = copy.copy(learn(model, data, start, tested))
        else:
            learned = {name: value for name, value in vars(known[key]).items() if name.endswith("_")}
            vars(model).update(learned, oracle_=model.oracle, agents_=data.names)
        return model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CRAFT, "_learn", learn_once)
        yield


def question(model, data, start, tested):
    """What is asked of a fit, in a few letters."""
    training = (model.oracle.training or Training()).but(checkpoints=None)
    same = clone(model).set_params(oracle__training=training)
    digest = hashlib.sha256(repr((same.get_params(), start, tested)).encode())
    for part in (data.rows, data.tau.agent, *(data.tau.at(h) for h in range(1, data.tau.H + 1))):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_python(page)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.name)
def test_tutorials_print_what_they_show(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_tutorial(page)


PAGE = """\
```python
print("three", 3)
```

```text
three ...
```

<!-- not run: there is no such thing -->
```console
$ craftrl nonsense
```

```console
$ craftrl encode model data.h5 --out states.csv  # a comment
4800 states
of 1200 trajectories
$ craftrl --version
```
"""


def test_what_a_page_shows_is_found_beside_what_it_does():
    python, text, console = blocks(PAGE)
    assert (python.kind, python.shown, python.line) == ("python", "three ...\n", 2)
    assert (text.kind, console.kind, console.shown) == ("text", "console", None)
    (first, shown), last = commands(console.code)
    assert first == "craftrl encode model data.h5 --out states.csv  # a comment"
    assert shown == "4800 states\nof 1200 trajectories\n"
    assert last == ("craftrl --version", "")


@pytest.mark.parametrize("block", ['print("four")', 'import warnings\nwarnings.warn("other")', "1 / 0"])
def test_a_page_that_shows_something_else_fails(block, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE.partition("<!--")[0].replace('print("three", 3)', block))
    with pytest.raises((AssertionError, UserWarning, ZeroDivisionError)):
        run_tutorial(page)


def test_what_is_shown_may_leave_things_out():
    check("here", "a ... c\n", "a b c\n")
    with pytest.raises(AssertionError, match="here"):
        check("here", "", "a print that is not shown\n")
