"""Every refusal is one sentence with exit code 2, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command_line import complaint
from craftrl.envs import BitsExBMDP, record

MANY = "9" * 5000
FIT = "fit data --out new"
COLLECT = "collect --world bits --n 5 --out new"
# What is asked for, and what the sentence says; `data` and `model` are a dataset of bits and a model of it.
REFUSED = [
    # lines that cannot be read
    ("fit data --out new --epochs x", "--epochs: must be a whole number of at least 1, below 10**18; 'x' was given"),
    ("fit data --out new --nonsense 3", "Unknown option: --nonsense. Did you mean --seed? See craftrl fit --help."),
    ("fit data", "--out must be given; see craftrl fit --help."),
    ("fit data --out", "--out requires an argument; see craftrl fit --help."),
    ("import", "AGENTS must be given; see craftrl import --help."),
    ("fit --out new", "DATA must be given; see craftrl fit --help."),
    (f"{FIT} --alpha one", "--alpha: must be a number or a fraction such as 5/32; 'one' was given; see craftrl fit"),
    (f"{FIT} --oracle {'n' * 5000}", "for --oracle. Choose from"),
    (f"{FIT} --resize 3y4", "must be WxH such as 64x48, or one number; '3y4' was given"),
    (f"{FIT} --crop 1,2,3", "must be four whole numbers L,T,W,H; '1,2,3' was given"),
    ("collect --world bits --n \u00b2 --out new", "'\u00b2' was given"),
    ("collect --world bits --n 1.7 --out new", "--n: must be a whole number of at least 1, below 10**18; '1.7' was"),
    (f"{COLLECT} --seed -1", "--seed: must be a whole number of at least 0, below 10**18; '-1' was given"),
    ("render model data --trajectories 0 -1 --out new.mp4", "--trajectories: must be a whole number of at least 0"),
    (f"reproduce table1 --seeds {MANY}", "a whole number of at least 1, below 10**18; '9999"),
    ("reproduce figures --seed -1", "argument --seed: "),
    ("reproduce tabel1 --seeds 2", "invalid choice: 'tabel1' (choose from 'table1', "),
    ("theory sample-size --alpha 1e999", "must be a number or a fraction"),
    ("chess", 'Unknown command "chess"; see craftrl --help.'),
    ("improt data", 'Unknown command "improt". Did you mean "import"? See craftrl --help.'),
    ("inspect data model", "There is one word too many: model; see craftrl inspect --help."),
    # files that are not there, or something else
    ("fit nowhere --out new", "There must be a dataset at nowhere; nothing is there; check the name."),
    ("fit alone.npz --out new", "There must be two agents at least; alone was given"),
    ("inspect nowhere", "There must be a dataset at nowhere; nothing is there; check the name."),
    ("evaluate nowhere data", "A model must be a file that save or craftrl fit has written; nowhere is not there"),
    ("evaluate text.json data", "text.json cannot be read, is of another kind"),
    ("encode model nowhere --out new.csv", "nothing is there; check the name."),
    ("import nowhere alone.npz --out new", "nowhere; nothing is there; check the name."),
    ("report model other --out new.html", "The data must be that which the model was fitted to"),
    (
        "evaluate model other",
        "at most 5 steps, as those fitted; longer ones were given; cut them, or fit with --statio",
    ),
    ("fit data --oracle coordinates --ray nowhere:1 --values 2 --out there.csv", "there.csv exists and is no model"),
    ("export model --h 2 --out new.onnx", "network"),
    ("render model data --out new.gif", "A video needs images"),
    # names of what is written
    ("fit data --out data", "is a link"),
    ("fit data --out text.json", "text.json exists and is no model of craftrl; choose another name."),
    ("fit data --out text.json --force", "text.json exists and is no model of craftrl; choose another name."),
    ("fit data --out ..", "The model must be a path that ends in a name"),
    ("fit data --out text.json/new", "The output folder must be writable; text.json is not"),
    ("collect --world bits --n 5 --out data", "data exists already; remove it, or choose another name."),
    (
        "encode model data --out new.txt",
        "The table must be named NAME.parquet or NAME.csv or NAME.npz; new.txt was given; choose",
    ),
    (
        "encode model data --out there.csv",
        "there.csv is there already; choose another name, or replace it with --force.",
    ),
    ("actions model data --out there.csv", "there.csv is there already; choose another name, or replace it with"),
    ("report model data --out there.csv", "A report must be named NAME.html; there.csv was given"),
    ("report model data --out s3://bucket/new.html", "on a disk of this machine"),
    ("reproduce table1 --seeds 1 --out ../made0", "holds other files"),
    ("reproduce agents --out ..", "The results folder must be a path that ends in a name"),
    # numbers and options that mean nothing together
    (f"{FIT} --alpha 0", "alpha must be a positive number; alpha = 0.0 was given"),
    (f"{FIT} --eta 2", "eta must lie in (0, 1/2]; eta = 2.0 was given"),
    (f"{FIT} --nu 2", "nu must lie in (0, 1]; nu = 2.0 was given"),
    (f"{FIT} --horizon 1", "horizon must be an integer of at least 2; 1 was given"),
    (f"{FIT} --horizon 9", "The horizon must lie in 2..5, the steps that there are; 9 was given"),
    (f"{FIT} --values 3", "--values is for coordinates; add --oracle coordinates"),
    (f"{FIT} --epochs 3", "--epochs is for networks; what learns is one entry of each observation"),
    (f"{FIT} --epochs 3 --oracle classifier", "--epochs is for networks; add --oracle network, or leave it out."),
    (f"{FIT} --key x", "--key is for recordings that are imported; data is a dataset already; leave it out"),
    (f"{FIT} --store new", "--store is for recordings that are imported; data is a dataset already"),
    (f"{FIT} --oracle classifier --ray local", "--ray is for coordinates, which are counted; leave it out"),
    (f"{FIT} --device nonsense", "device must be 'auto', 'cpu' or 'cuda'; 'nonsense' was given"),
    ("collect --n 5 --out new", "An environment must be named by --env or by --world; none was given"),
    ("collect --world chess --n 5 --out new", "must be one of bits, pixels; 'chess'"),
    (f"{COLLECT} --walkers 2", "The world bits takes horizon, n_features and seed; n_walkers was given; leave it out"),
    (f"{COLLECT} --features 2000000000", "must fit into memory; that needs"),
    ("report model --diagnose 2 --out new.html", "--diagnose needs the data that the model was fitted to; give DATA"),
    ("theory assumptions", "Give either --world or --data"),
    ("theory sample-size --alpha 1 --eta 1/5", "needs --nu, --nu-prime, --horizon, --class-size too"),
    ("render model data --trajectories 9999 --out new.gif", "A trajectory must be one of 0..2999"),
]


@pytest.mark.parametrize(("line", "sentence"), REFUSED, ids=[line[:60] for line, _ in REFUSED])
def test_a_refusal_is_one_sentence(line: str, sentence: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "text.json").write_text('{"format": "other"}')
    (here / "there.csv").write_text("mine")
    np.savez(here / "alone.npz", x=np.zeros((3, 3, 2), np.uint8))
    if "other" in line.split():
        world = BitsExBMDP(6, 12, 0)
        record(world, world.paper_policies(), 5, here / "other")
    before = {path: path.read_bytes() if path.is_file() else b"" for path in here.rglob("*")}
    assert sentence in complaint(capsys, *line.split())
    assert {path: path.read_bytes() if path.is_file() else b"" for path in here.rglob("*")} == before
