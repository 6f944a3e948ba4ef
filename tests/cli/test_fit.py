"""`craftrl fit`: what it writes, says and chooses, and that the same command always goes on."""

import re
from pathlib import Path

import numpy as np
import pytest

import craftrl as library
from command_line import BOUNDS, craftrl, run
from craftrl import CRAFT, TrajectoryDataset
from craftrl.envs import BitsExBMDP, collect


def test_a_model_that_python_reads_and_would_have_made(here):
    model, world = library.load("model"), BitsExBMDP(5, 12, 0)
    assert vars(model.bounds_) == {"alpha": 1.0, "eta": 0.2, "nu": 5 / 32}
    assert all(model.encoders_[h].feature == world.controllable_feature(h) for h in range(2, 6))
    again = CRAFT(alpha=1.0, eta=0.2, nu=5 / 32).fit("data")
    assert np.array_equal(model.transform("data"), again.transform("data"))
    assert repr(model.choices_) == repr(again.choices_)


def test_it_says_what_was_chosen_and_why(here):
    out = craftrl("fit data --coupling chain --relabel --out new")
    assert out.startswith("Data: 1500 + 1500 trajectories of 2 agents, 5 steps, observations 12.\n")
    assert "Learner: one entry of each observation, since observations are integers in 0..1" in out
    assert "\nVerdict: trust. CRAFT found 1 state at step 1, 2 states at each of steps 2 to 5." in out
    assert "\nWarning: " not in out
    assert "refits on resampled trajectories (10) agree" in out
    assert re.search(r"Chosen: alpha = [\d.]+, eta = [\d.]+, nu = [\d.]+: of \d+ settings tried", out)
    assert "Chosen: coupling" not in out
    assert library.load("new").alpha == "auto"
    out = craftrl("fit data --diagnose 2 --out diagnosed", *BOUNDS)
    assert re.search(r"^  h states assigned same count stable explained trust\n  1      1 ", out, flags=re.MULTILINE)
    assert out.count("refits on resampled trajectories (2) agree") == 1


def test_what_to_do_is_said_once_and_last(here):
    craftrl("collect --world bits --horizon 5 --features 12 --n 30 --out few")
    lines = craftrl("fit few --out new").splitlines()
    kinds = [line.partition(":")[0] for line in lines[-8:] if line.startswith(("Warning: ", "Note: ", "Next: "))]
    assert kinds == sorted(kinds, key=["Warning", "Note", "Next"].index)
    assert {"Warning", "Next"} <= set(kinds)
    assert len(set(lines[-len(kinds) :])) == len(kinds)


def test_steps_that_few_reach_are_left_out_unless_asked_for(here):
    """The library decides; its own transform, the report and the table of states then leave them out as well."""
    world = BitsExBMDP(horizon=5, n_features=6, seed=0)
    tau = collect(world, world.paper_policies(), 600, seed=0).tau
    episodes = [tau.episode(i)[: 5 if i % 40 == 0 else 4] for i in range(tau.n)]
    few = TrajectoryDataset.from_episodes([episodes[:600], episodes[600:]])
    few.save("few")
    assert "Chosen: horizon = 4: few trajectories of some agent are longer." in craftrl("fit few --out new")
    model = library.load("new")
    assert len(model.encoders_) == len(CRAFT().fit(few).encoders_) == 4
    assert (model.transform(few)[:, 4] == -1).all()
    assert "4800 states of 1200" in craftrl("encode new few --out states.csv")
    craftrl("report new few --diagnose 0 --out report.html")
    craftrl("fit few --horizon 3 --out other")
    assert len(library.load("other").encoders_) == 3


def test_the_same_command_gives_the_verdict_again_and_others_keep_the_model(here, monkeypatch):
    line = "fit data --out new"
    craftrl(line, *BOUNDS)
    before = Path("new").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(CRAFT, "fit", lambda *given, **more: pytest.fail("it was fitted again"))
        out = craftrl(line, *BOUNDS)
    assert "\nVerdict: trust. " in out
    assert out.count("Written to new") == 1
    craftrl("collect --world bits --horizon 5 --features 12 --n 50 --out other")
    for other, more in ((line, ["--stationary"]), (line, ["--find-start"]), ("fit other --out new", [])):
        code, _, said = run(other, *BOUNDS, *more)
        assert code == 2
        assert "new is there already; choose another name, or replace it with --force" in said[0]
        assert Path("new").read_bytes() == before
    craftrl(line, *BOUNDS, "--stationary", "--force")
    assert library.load("new").stationary is True
    assert re.search(r"\n +0 +\d+ +[\d.]+% +[\d.]+%\n", craftrl("evaluate new data"))  # a line for each state
    assert {path.name for path in here.iterdir()} == {"data", "model", "new", "other"}


def test_the_same_command_twice_at_once_loses_nothing(here, monkeypatch):
    fit = CRAFT.fit
    craftrl("fit data --out twin", *BOUNDS)

    def fit_while_another_one_saves(self, *given, **more):
        Path("twin").rename("new")
        return fit(self, *given, **more)

    monkeypatch.setattr(CRAFT, "fit", fit_while_another_one_saves)
    assert "Written to new" in craftrl("fit data --out new", *BOUNDS)


def test_starts_are_found_on_request(here):
    data = TrajectoryDataset.open("data")
    TrajectoryDataset.from_arrays([data.rows(np.flatnonzero(data.agent == k))[:, 1:] for k in (0, 1)]).save("clips")
    for _ in range(2):
        assert "Chosen: start = 2: " in craftrl("fit clips --find-start --out new", *BOUNDS)
    assert "is there already" in run("fit clips --out new", *BOUNDS)[2][0]  # fitted otherwise, it is another model


def test_recordings_go_into_a_dataset_beside_the_model(here):
    """The same command again finds it there; the model is that of the dataset they came from."""
    tau = TrajectoryDataset.open("data")
    for k, name in enumerate(("ann", "ben")):
        np.savez(f"{name}.npz", x=tau.rows(np.flatnonzero(tau.agent == k)))
    line = ["fit ann.npz ben.npz --out new.safetensors", *BOUNDS]
    assert "1500 + 1500 trajectories of 2 agents (ann, ben)" in craftrl(*line)
    written = Path("new.data/dataset.json").stat().st_mtime_ns
    craftrl(*line, "--force")
    assert Path("new.data/dataset.json").stat().st_mtime_ns == written
    assert (library.load("new.safetensors").transform(tau) == library.load("model").transform(tau)).all()


def test_images_that_will_take_long_on_a_cpu_are_told_with_smaller_ones(here, monkeypatch):
    x = np.random.default_rng(0).integers(0, 256, (20, 4, 96, 128, 3)).astype(np.uint8)
    TrajectoryDataset.from_arrays([x[:10], x[10:]]).save("frames")
    monkeypatch.setattr("craftrl.cli.fit.PER_PIXEL", 0.01)
    monkeypatch.setattr(CRAFT, "fit", lambda model, tau, start: 1 / 0)
    code, out, _ = run("fit frames --device cpu --out new")
    assert code == 1
    told = "Time: about 2.7 hours, 41 minutes with --resize 64x48, 10 minutes with --resize 32x24; less on a GPU.\n"
    assert told in out
