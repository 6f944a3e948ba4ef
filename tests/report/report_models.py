"""Small models to report on, each with its data, fitted once for all tests of the report; and pages, read back."""

import base64
import io
import json
import re
from functools import cache
from html import unescape

import numpy as np
from PIL import Image

from craftrl import CRAFT
from craftrl.envs import BitsExBMDP, collect
from craftrl.report import write_report
from shipped import data, fitted, model_with_five_states

WORLD = BitsExBMDP(horizon=5, n_features=8, seed=0)


@cache
def bits():
    """The paper's world, learned: one bit of eight is the state."""
    tau = collect(WORLD, WORLD.paper_policies(), 500, seed=0).tau
    return CRAFT(alpha=1.0, eta=0.2, nu=0.15).fit(tau), tau


@cache
def three_agents():
    """Three agents with names that HTML would trip over, and a model of a step each."""
    rng = np.random.default_rng(0)
    right = np.repeat([0.2, 0.5, 0.8], 300)
    cell = np.zeros((900, 4), dtype=np.int64)
    for h in range(1, 4):
        cell[:, h] = rng.random(900) < right
    x = np.stack([cell, rng.integers(2, size=cell.shape)], axis=-1)
    names = np.repeat(['<b>"A"', "B & co", "</script>"], 300)
    order = rng.permutation(900)
    return fitted(CRAFT(alpha=0.5, eta=0.1, nu=0.05), x[order], names[order]), x[order], names[order]


def images():
    """A model of images with one encoder that names five states, and its data."""
    return model_with_five_states(), data("images").tau


class Page:
    """A report that was written, as its reader has it."""

    def __init__(self, folder, model, *given, **how):
        write_report(model, folder / "page.html", *given, **{"n_resamples": 0, "overwrite": True, **how})
        self.html = (folder / "page.html").read_text(encoding="utf-8")
        self.text = " ".join(unescape(re.sub("<[^>]+>", " ", self.html.partition("</style>")[2])).split())
        self.files = {
            name: base64.b64decode(held).decode()
            for name, held in re.findall(r'download="([^"]+)" href="data:[^;]+;base64,([^"]*)"', self.html)
        }
        self.numbers = json.loads(self.files["report.json"])

    def rows(self, name):
        """A table, a dictionary for each row."""
        table = self.numbers["tables"][name]
        return [dict(zip(table["columns"], row)) for row in table["rows"]]

    def pictures(self, alt):
        """The pictures whose description begins so, as arrays."""
        found = re.findall(rf'<img src="data:image/png;base64,([^"]+)" alt="{alt}', self.html)
        return [np.asarray(Image.open(io.BytesIO(base64.b64decode(one)))) for one in found]
