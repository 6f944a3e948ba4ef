"""Every refusal is one sentence with exit code 2, and leaves nothing behind."""

from pathlib import Path

import numpy as np
import pytest

from command_line import complaint, run
from craftrl.envs import BitsExBMDP, record

MANY = "9" * 5000
FIT = "fit data --out new"
COLLECT = "collect --world bits --n 5 --out new"
GYM = "collect --n 6 --out new --env"
# What is asked for, and what the sentence says; `data` and `model` are a dataset of bits and a model of it.
BITS = [
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
    (f"{COLLECT} --workers 0", "--workers: must be a whole number of at least 1, below 10**18; '0' was given"),
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
    ("evaluate model part", "There must be a dataset at part; it is unfinished"),
    ("evaluate nowhere data", "A model must be a file that save or craftrl fit has written; nowhere is not there"),
    ("evaluate text.json data", "text.json cannot be read, is of another kind"),
    ("encode model nowhere --out new.csv", "nothing is there; check the name."),
    ("import nowhere alone.npz --out new", "nowhere; nothing is there; check the name."),
    ("report model other --out new.html", "The data must be that which the model was fitted to"),
    (
        "evaluate model other",
        "at most 5 steps, as those fitted; longer ones were given; cut them, or fit with --sta",
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
    ("encode model data --out new.txt", "The table must be named NAME.parquet or NAME.csv or NAME.npz; new.txt was"),
    ("encode model data --out there.csv", "there.csv is there already; choose another name, or replace it with --for"),
    ("actions model data --out there.csv", "there.csv is there already; choose another name, or replace it with"),
    ("report model data --out there.csv", "The report must be named NAME.html or NAME.htm; there.csv was given"),
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
    *(  # before recordings are read
        (f"fit alone.npz twin.npz --out new {options}", sentence)
        for options, sentence in {
            "--eta 2": "eta must lie in",
            "--values 2": "--values is for",
            "--horizon 1": "horizon must be",
            "--oracle network --ray local": "--ray is for",
            "--window 1": "window must be",
        }.items()
    ),
    ("collect --n 5 --out new", "An environment must be named by --env or by --world; none was given"),
    ("collect --world chess --n 5 --out new", 'Invalid value "chess" for --world. Choose from: "bits", "pixels"'),
    (f"{COLLECT} --walkers 2", "The world bits takes horizon, n_features and seed; n_walkers was given; leave it out"),
    (f"{COLLECT} --size 3", "The world bits takes horizon, n_features and seed; size was given"),
    (f"{COLLECT} --env-arg a=1", "--env-arg goes with --env"),
    (f"{COLLECT} --env x", "by --env or by --world; both was given"),
    (f"{COLLECT} --features 2000000000", "must fit into memory; that needs"),
    ("report model --diagnose 2 --out new.html", "--diagnose needs the data that the model was fitted to; give DATA"),
    ("theory assumptions", "Give either --world or --data"),
    ("theory sample-size --alpha 1 --eta 1/5", "needs --nu, --nu-prime, --horizon, --class-size too"),
    ("render model data --trajectories 9999 --out new.gif", "numbers from 0 to 2999, one at least; [9999]"),
    # environments
    (f"{GYM} cli.gridworld:continuous", "The environment must have discrete actions; its actions are Box("),
    (f"{GYM} Nowhere-v0", "Nowhere-v0 does not (NameNotFound"),
    (f"{GYM} nowhere:make", "nowhere:make does not (ModuleNotFoundError: No module named 'nowhere')"),
    (f"{GYM} cli.gridworld:lost", "cli.gridworld:lost does not (NameNotFound"),
    (f"{GYM} cli.gridworld:broken", "cli.gridworld:broken does not (RuntimeError: no display)"),
    (f"{GYM} cli.gridworld:nothing", "cli.gridworld:nothing gives None; have the function return one"),
    (f"{GYM} cli.gridworld:Failing", "The environment must run without errors; KeyError: 'lost', in episode 1"),
    (f"{GYM} cli.gridworld:Grid --env-arg wind=1", "unexpected keyword argument 'wind'"),
    (f"{GYM} cli.gridworld:Grid --env-arg wind", "--env-arg must be NAME=VALUE; 'wind' was given"),
    (f"{GYM} cli.gridworld:Grid --size 3", "with --env write --env-arg size=3"),
    (f"{GYM} cli.gridworld:world --horizon 4", "Episodes of cli.gridworld:world have 3 steps; leave --horizon out"),
]
PLAN = "plan model data --env cli.gridworld:Grid --goal"
DRY = "plan model data --dry-run --goal"
# `data` are videos of the grid with their actions, and `model` reads them without error.
GRID = [
    (f"{PLAN} 8", "Which action makes which move must be known"),
    (f"{PLAN} 8 --explore 9 --out plan.avi", "The video must be named NAME.mp4 or NAME.mkv or NAME.gif"),
    (f"{PLAN} 8 --explore 9 --out there.gif", "The video must be a new file"),
    ("plan model data --goal 8 --explore 9", "An environment must be named by --env or by --world; none was given"),
    (f"{PLAN} 8 --explore 9 --size 3", "write --env-arg size=3"),
    (f"{PLAN} 8 --explore 9 --action-names a,b,c,d,e", "must name the environment's 4 actions; 5 were given"),
    (f"{PLAN} 8 --explore 9 --action-names a,,b", "--action-names must be names with commas between them"),
    (f"{PLAN} 8 --explore 9 --episodes 1001", "--episodes must be an integer from 1 to 1000; 1001 was given"),
    ("plan model data --goal 8 --explore 9 --env cli.gridworld:of_bits", "(6, 6, 3); uint8 of shape (12,) was given"),
    ("plan model data --goal 8 --explore 9 --env cli.gridworld:continuous", "must have discrete actions, numbered fro"),
    (f"{PLAN} 8 --labels contradicting.npz", "Without --stochastic one action must have one"),
    (f"{PLAN} 9 --explore 9", "one of the states 0..8 of the model; '9' is none"),
    (f"{PLAN} nowhere.png --explore 9", "'nowhere.png' is none of these"),
    (f"{PLAN} notes.txt --explore 9", "notes.txt must be a picture or an NPY file; it cannot be read"),
    (f"{PLAN} small.npy --explore 9", "The goal must show what the model was fitted to"),
    (f"{PLAN} 8 --labels nowhere.npz", "nowhere.npz"),
    (f"{PLAN} 8 --labels small.npy", "small.npy must be an NPZ file"),
    (f"{PLAN} 8 --labels none.npz", "none.npz has none"),
    (f"{PLAN} 8 --labels large.npz", "Actions must lie in 0..3"),
    (f"{PLAN} 8 --labels half.npz", "each must be one whole number"),
    (f"{PLAN} 8 --labels short.npz", "short.npz must be an NPZ file with x (n, 2, ...) and actions (n,), or a dataset"),
    (f"{PLAN} 8 --explore 9 --label-count 2", "--label-count counts labels; none were given"),
    (f"{DRY} 8 --explore 9", "--explore needs the environment"),
    (f"{DRY} 8 --labels data --out plan.gif", "--out draws what happens"),
]


def contents(folder):
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.mark.parametrize(("line", "sentence"), BITS, ids=[line[:60] for line, _ in BITS])
def test_a_refusal_is_one_sentence(line, sentence, here):
    Path("text.json").write_text('{"format": "other"}')
    Path("there.csv").write_text("mine")
    Path("part").mkdir()
    Path("part/unfinished.json").touch()
    for k, name in enumerate(("alone", "twin")):
        np.savez(f"{name}.npz", x=np.full((9, 3, 2), k, np.uint8))
    if "other" in line.split():
        world = BitsExBMDP(6, 12, 0)
        record(world, world.paper_policies(), 5, "other")
    before = contents(here)
    assert sentence in complaint(line)
    assert contents(here) == before


@pytest.mark.parametrize(("line", "sentence"), GRID, ids=[line[16:76] for line, _ in GRID])
def test_a_refusal_of_a_plan_is_one_sentence(line, sentence, grid):
    Path("there.gif").write_text("mine")
    before = contents(grid)
    code, _, said = run(line)
    assert (code, len(said)) == (2, 1)
    assert sentence in said[0]
    assert contents(grid) == before
