"""The command line: each command's path from arguments to output, and every complaint in one sentence."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import craftrl
from craftrl import envs
from craftrl.cli import main
from craftrl.data import TrajectoryDataset
from craftrl.envs import WORLDS, BitsExBMDP
from craftrl.reproduce.catalogue import available_studies

COMMANDS = [
    [],
    ["reproduce"],
    *(["reproduce", study] for study in available_studies()),
    ["collect"],
    ["import"],
    ["inspect"],
    ["fit"],
    ["estimate"],
    ["evaluate"],
    ["actions"],
    ["plan"],
    ["report"],
    ["theory"],
    ["theory", "assumptions"],
    ["theory", "sample-size"],
]
BOUNDS = ["--alpha", "1", "--eta", "1/5", "--nu", "5/32"]


def collect(out: Path, *more: str) -> int:
    world = ["--world", "bits", "--horizon", "5", "--features", "12", "--n", "1500"]
    return main(["collect", *world, "--out", str(out), *more])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "data.h5"
    assert collect(path) == 0
    return path


@pytest.fixture(scope="module")
def model(data: Path) -> Path:
    path = data.with_name("model")
    assert main(["fit", str(data), *BOUNDS, "--out", str(path)]) == 0
    return path


def complaint(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """What the command says on stderr; nothing on stdout, exit code 2, one line, no traceback."""
    capsys.readouterr()
    assert main(list(argv)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    return err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_examples(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*command, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text
    assert "craftrl " + " ".join(command) in text


@pytest.mark.parametrize("command", [[], ["reproduce", "table1"], ["fit"]], ids=" ".join)
def test_help_answers_at_once(command: list[str]) -> None:
    """No numerical package is imported on the way."""
    run = [sys.executable, "-X", "importtime", "-m", "craftrl", *command, "--help"]
    result = subprocess.run(run, capture_output=True, text=True, check=True)
    assert not re.search(r"\| +(numpy|scipy|numba|matplotlib|torch)\b", result.stderr)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert re.fullmatch(r"craftrl \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_collect_keeps_the_truth_out_of_the_data(data: Path) -> None:
    tau = TrajectoryDataset.open(data)
    assert (tau.n, tau.H, tau.K, tau.obs_shape) == (3000, 5, 2, (12,))
    with np.load(data.with_name("data.truth.npz")) as truth:
        assert truth["states"].shape == (3000, 5)
        assert truth["actions"].shape == (3000, 4)
    assert sorted(p.name for p in data.parent.iterdir() if p.suffix != ".json") == ["data.h5", "data.truth.npz"]


def test_collect_depends_on_its_seeds_alone(tmp_path: Path, data: Path) -> None:
    collect(tmp_path / "same.h5")
    collect(tmp_path / "other.h5", "--seed", "1")
    first, same, other = (TrajectoryDataset.open(p) for p in (data, tmp_path / "same.h5", tmp_path / "other.h5"))
    assert (first.at(5) == same.at(5)).all()
    assert (first.at(5) != other.at(5)).any()


def test_collect_overwrites_nothing(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = data.read_bytes()
    argv = ["collect", "--world", "bits", "--n", "5", "--out", str(data)]
    assert "data.h5 exists already; remove it, or choose another name." in complaint(capsys, *argv)
    assert data.read_bytes() == before


def test_collect_killed_between_its_files_goes_on(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def killed(tau: TrajectoryDataset, path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(TrajectoryDataset, "save", killed)
        assert collect(tmp_path / "x.h5") == 130
    assert [p.name for p in tmp_path.iterdir()] == ["x.truth.npz"]
    argv = ["collect", "--world", "bits", "--n", "5", "--out", str(tmp_path / "x.h5")]
    assert "x.truth.npz; that file exists already and is of other data; remove it" in complaint(capsys, *argv)
    assert collect(tmp_path / "x.h5") == 0
    assert (TrajectoryDataset.open(tmp_path / "x.h5").at(5) == TrajectoryDataset.open(data).at(5)).all()
    assert (tmp_path / "x.truth.npz").read_bytes() == data.with_name("data.truth.npz").read_bytes()


def test_inspect_says_which_agents_to_compare(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(data), "--pairs", "--no-sheet", "--seed", "1"]) == 0
    out = capsys.readouterr().out
    assert "2 agents, 3000 episodes" in out
    assert re.search(r"0 and 1 +1,500 \+ 1,500 +\d+% +4 of 4 .*worth comparing", out)
    assert "Compare 0 with 1 first" in out


@pytest.mark.parametrize(
    ("what", "value", "said"), [("agent", 0, "at least two agents"), ("lengths", 1, "one of them must be 2 or more")]
)
def test_inspect_has_nothing_to_compare(
    what: str, value: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One agent alone, trajectories of one step, and what is no store."""
    h5py = pytest.importorskip("h5py")
    store = tmp_path / "data.h5"
    TrajectoryDataset.from_arrays([np.zeros((5, 3, 2), dtype=np.uint8)] * 2).save(store)
    with h5py.File(store, "a") as file:
        file[what][:] = value
        del file[what].attrs["crc32"]  # as a writer that makes no such sums
    assert said in complaint(capsys, "inspect", str(store), "--pairs", "--no-sheet")
    store.write_bytes(b"no store")
    assert "data.h5" in complaint(capsys, "inspect", str(store), "--pairs", "--no-sheet")


def test_the_help_names_every_world(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["collect", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "bits (the paper's), lock, multimaze or pixels; made by others: freeway, seaquest, minigrid, doom" in text
    assert list(WORLDS) == ["bits", "lock", "multimaze", "pixels", "freeway", "seaquest", "minigrid", "doom"]


def test_worlds_that_others_made_are_collected_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("minigrid")
    out = tmp_path / "grid.h5"
    argv = ["--world", "minigrid", "--layout", "MiniGrid-Empty-5x5-v0", "--walkers", "1", "--horizon", "3", "--n", "4"]
    assert main(["collect", *argv, "--out", str(out)]) == 0
    tau = TrajectoryDataset.open(out)
    assert (tau.n, tau.H, tau.obs_shape) == (8, 3, (30, 30, 3))
    assert "grid.truth.npz" in capsys.readouterr().out
    told = complaint(capsys, "theory", "assumptions", "--world", "minigrid")
    assert "minigrid can only be played; collect data from it, and give that with --data" in told


def test_an_unknown_world(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["collect", "--world", "chess", "--n", "5", "--out", str(tmp_path / "x.h5")]
    assert (
        "must be one of bits, lock, multimaze, pixels, freeway, seaquest, minigrid, doom; 'chess' was given"
        in complaint(capsys, *argv)
    )


def test_collect_refuses_options_of_other_worlds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["collect", "--world", "multimaze", "--features", "9", "--n", "5", "--out", str(tmp_path / "x.h5")]
    assert "The world multimaze takes horizon and seed; n_features was given; leave it out" in complaint(capsys, *argv)
    assert list(tmp_path.iterdir()) == []


def test_seeds_are_not_negative(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["collect", "--world", "bits", "--n", "5", "--seed", "-1", "--out", str(tmp_path / "x.h5")]
    with pytest.raises(SystemExit, match="2"):
        main(argv)
    assert "must be a whole number of at least 0; '-1' was given" in capsys.readouterr().err


def test_sample_size_knows_the_worlds_states(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["theory", "sample-size", "--world", "lock", "--class-size", "100"]
    assert main(argv) == main([*argv, "--states", "3"]) == 0
    first, second = capsys.readouterr().out.strip().split("\n")
    assert first == second


def test_fit_writes_a_model_that_python_reads(model: Path, data: Path) -> None:
    loaded = craftrl.load(model)
    assert vars(loaded.bounds_) == {"alpha": 1.0, "eta": 0.2, "nu": 5 / 32}
    assert loaded.alpha == 1.0
    assert [loaded.encoders_[h].feature for h in range(2, 6)] == [
        BitsExBMDP(5, 12, 0).controllable_feature(h) for h in range(2, 6)
    ]
    again = craftrl.CRAFT(alpha=1.0, eta=0.2, nu=5 / 32).fit(data)
    assert np.array_equal(loaded.transform(data), again.transform(data))


def test_fit_says_what_it_chose_and_why(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(data), "--coupling", "chain", "--relabel", "yes", "--out", str(tmp_path / "model")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Data: 1500 + 1500 trajectories of 2 agents, all 5 steps, observations 12.\n")
    assert "Learner: one entry of each observation, since observations are integers in 0..1" in out
    assert "Bounds: alpha, eta, nu chosen from the data." in out
    assert "\nVerdict: trust. CRAFT found 1 state at step 1, 2 states at each of steps 2 to 5." in out
    assert "\nRecord more: Trajectories that go from state" in out
    assert re.search(r"Chosen: alpha = [\d.]+, eta = [\d.]+, nu = [\d.]+: of \d+ combinations tried", out)
    assert "Chosen: coupling" not in out
    assert craftrl.load(tmp_path / "model").alpha == "auto"


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    path = tmp_path_factory.mktemp("frames") / "x.h5"
    world = ["--world", "pixels", "--size", "2", "--walkers", "0", "--horizon", "3"]
    assert main(["collect", *world, "--n", "200", "--out", str(path)]) == 0
    return path


def fit_of_frames(frames: Path, out: Path) -> list[str]:
    bounds = ["--alpha", "1", "--eta", "0.1", "--nu", "0.05"]
    return ["fit", str(frames), *bounds, "--epochs", "1", "--device", "cpu", "--seed", "3", "--out", str(out)]


def test_fit_learns_from_images_that_collect_wrote(
    frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(fit_of_frames(frames, tmp_path / "model")) == 0
    out = capsys.readouterr().out
    assert "Learner: a network, since observations are images of shape (12, 12, 3), on the CPU; one encoder" in out
    assert "One encoder for all steps tells" in out
    assert re.search(r"\nVerdict: (trust|check|do not trust)\. CRAFT found", out)  # networks are checked too
    assert main(["evaluate", str(tmp_path / "model"), str(frames)]) == 0
    assert craftrl.load(tmp_path / "model").oracle.training.seed == 3


def test_an_interrupted_fit_goes_on_and_ends_with_the_same_model(
    frames: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from craftrl.oracles.network import oracle, training

    minibatches = []
    parts = training._parts
    monkeypatch.setattr(training, "_parts", lambda *given: minibatches.append(1) or parts(*given))
    assert main(fit_of_frames(frames, tmp_path / "whole")) == 0
    in_all = len(minibatches)
    share = oracle.PreparedNetwork.share
    with monkeypatch.context() as patch:
        patch.setattr(oracle.PreparedNetwork, "share", _interrupted)
        assert main(fit_of_frames(frames, tmp_path / "model")) == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()
    assert oracle.PreparedNetwork.share is share
    minibatches.clear()
    assert main(fit_of_frames(frames, tmp_path / "model")) == 0
    assert 0 < len(minibatches) < in_all  # the log-odds were not learned again
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "whole"]  # nothing is left beside the model
    whole, model = (craftrl.load(tmp_path / name) for name in ("whole", "model"))
    assert (whole.labels_ == model.labels_).all()


def _interrupted(*given: object) -> None:
    raise KeyboardInterrupt


def test_steps_that_few_reach_are_left_out_unless_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = BitsExBMDP(horizon=5, n_features=6, seed=0)
    tau = envs.collect(world, world.paper_policies(), 600, seed=0).tau
    x = [[tau.at(h)[i] for h in range(1, 6)] for i in range(tau.n)]
    cut = [x[i][: 5 if i % 40 == 0 else 4] for i in range(tau.n)]
    TrajectoryDataset.from_episodes([cut[:600], cut[600:]]).save(tmp_path / "data.h5")
    assert main(["fit", str(tmp_path / "data.h5"), "--out", str(tmp_path / "model")]) == 0
    assert "the first 4 of 5 steps, which enough of all agents reach" in capsys.readouterr().out
    assert len(craftrl.load(tmp_path / "model").encoders_) == 4
    argv = ["fit", str(tmp_path / "data.h5"), "--out", str(tmp_path / "other"), "--horizon"]
    assert main([*argv, "3"]) == 0
    assert len(craftrl.load(tmp_path / "other").encoders_) == 3
    assert "The horizon must lie in 2..5" in complaint(capsys, *argv, "9", "--force")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epochs", "3"], "--epochs is for networks; add --oracle network"),
        (["--values", "3"], "--values is for coordinates; add --oracle coordinates"),
    ],
)
def test_options_of_another_oracle_are_refused(
    data: Path, tmp_path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in complaint(capsys, "fit", str(data), *options, "--out", str(tmp_path / "model"))


def test_fit_replaces_nothing_but_a_model_and_that_on_request(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = data.read_bytes()
    for force in ([], ["--force"]):
        message = complaint(capsys, "fit", str(data), *BOUNDS, *force, "--out", str(data))
        assert "data.h5 exists and is no model of ours; choose another name." in message
        assert "is no model of ours" in complaint(capsys, "fit", str(data), *force, "--out", str(tmp_path))
    assert data.read_bytes() == before
    out = ["--out", str(tmp_path / "model")]
    assert main(["fit", str(data), *BOUNDS, *out]) == 0
    assert "model holds a model already; choose another name" in complaint(capsys, "fit", str(data), *BOUNDS, *out)
    assert main(["fit", str(data), *BOUNDS, "--stationary", "--force", *out]) == 0
    assert craftrl.load(tmp_path / "model").stationary
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_fit_says_whether_to_trust_it(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["fit", str(data), "--alpha", "1", "--eta", "1/5", "--nu", "5/32", "--diagnose", "2"]
    assert main([*argv, "--out", str(tmp_path / "model")]) == 0
    assert re.search(r"^(trust|check|do not trust): score [\d.]+", capsys.readouterr().out, flags=re.M)
    assert main([*argv[:-2], "--out", str(tmp_path / "unasked")]) == 0
    assert "refits on resampled trajectories (10) agree" in capsys.readouterr().out


def test_evaluate_with_and_without_truth(model: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(model), str(data), "--truth", str(data.with_name("data.truth.npz"))]) == 0
    out = capsys.readouterr().out
    mean = re.search(r"mean over h = 1\.\.5: ([\d.]+)%, over h = 2\.\.5: ([\d.]+)%", out)
    assert mean is not None
    assert float(mean[1]) > 99
    single = re.search(r"single states, h = 2\.\.5: mean ([\d.]+)%, worst ([\d.]+)%", out)
    assert single is not None
    assert float(mean[2]) >= float(single[1]) >= float(single[2]) > 99
    chance = re.search(r"one state named at every step: mean over h = 2\.\.5: ([\d.]+)%", out)
    assert chance is not None
    assert 50 < float(chance[1]) < 65
    assert main(["evaluate", str(model), str(data)]) == 0
    assert "share of trajectories in each" in capsys.readouterr().out


def test_evaluate_refuses_foreign_files(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = tmp_path / "foreign.json"
    foreign.write_text('{"format": "other"}')
    message = complaint(capsys, "evaluate", str(foreign), str(data))
    assert "A model must be a folder that save or craftrl fit has written" in message
    message = complaint(capsys, "evaluate", str(model), str(data), "--truth", str(model))
    assert "Ground truth must be an NPZ file with `states`" in message
    other = tmp_path / "other.h5"
    main(["collect", "--world", "bits", "--horizon", "6", "--features", "12", "--n", "5", "--out", str(other)])
    message = complaint(capsys, "evaluate", str(model), str(other))
    assert "Trajectories must have at most 5 steps, as those fitted" in message
    message = complaint(capsys, "evaluate", str(model), str(data), "--truth", str(tmp_path / "other.truth.npz"))
    assert "shape (3000, 5)" in message
    assert "it belongs to other data" in message


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (["--alpha", "0", "--eta", "1/5", "--nu", "1/8"], "alpha must be a positive number; alpha = 0.0 was given"),
        (["--alpha", "1", "--eta", "0.6", "--nu", "1/8"], "eta must lie in (0, 1/2]; eta = 0.6 was given"),
        (["--alpha", "1", "--eta", "1/5", "--nu", "2"], "nu must lie in (0, 1]; nu = 2.0 was given"),
    ],
)
def test_fit_refuses_bounds_out_of_range(
    data: Path, tmp_path: Path, bounds: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in complaint(capsys, "fit", str(data), *bounds, "--out", str(tmp_path / "model"))
    assert list(tmp_path.iterdir()) == []


def test_fit_refuses_what_is_no_number(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["fit", str(data), "--alpha", "one", "--out", "model"])
    assert stop.value.code == 2
    assert "must be a number or a fraction such as 5/32; 'one' was given" in capsys.readouterr().err


def test_fit_refuses_missing_data_and_unwritable_places(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    complaint(capsys, "fit", str(tmp_path / "none.h5"), *BOUNDS, "--out", str(tmp_path / "model"))
    message = complaint(capsys, "fit", str(data), *BOUNDS, "--out", str(data / "model"))
    assert "The output folder must be writable" in message


def test_theory_gives_the_papers_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "assumptions", "--world", "bits"]) == 0
    found = dict(re.findall(r"(alpha|eta|nu)\s+= ([\d.]+)", capsys.readouterr().out))
    assert float(found["alpha"]) == pytest.approx(np.log(3), rel=1e-5)
    assert float(found["eta"]) == pytest.approx(1 / 5)
    assert float(found["nu"]) == pytest.approx(5 / 32)


def test_theory_of_data(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["theory", "assumptions", "--data", str(data), "--truth", str(data.with_name("data.truth.npz"))]
    assert main(argv) == 0
    assert "alpha = " in capsys.readouterr().out
    assert "either --world, or --data and --truth" in complaint(capsys, *argv[:4])


def test_sample_size_and_its_inverse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "sample-size", "--world", "bits"]) == 0
    total = re.search(r"([\d.e+]+) trajectories in all", capsys.readouterr().out)
    assert total is not None
    assert main(["theory", "sample-size", "--world", "bits", "--trajectories", f"{float(total[1]) * 1.01:.0f}"]) == 0
    assert "guarantee epsilon_0 = 0.049" in capsys.readouterr().out
    assert main(["theory", "sample-size", "--world", "bits", "--trajectories", "1000"]) == 0
    assert "guarantees nothing" in capsys.readouterr().out
    message = complaint(capsys, "theory", "sample-size", "--alpha", "1", "--eta", "1/5")
    assert "needs --nu, --nu-prime, --horizon, --class-size too" in message


def test_an_interruption_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(run: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("craftrl.reproduce.table1.run.run_one", interrupted)
    assert main(["reproduce", "table1", "--seeds", "1", "--quiet", "--out", str(tmp_path / "t")]) == 130
    assert "the same command goes on" in capsys.readouterr().err


def test_fit_from_one_file_per_agent(data: Path, model: Path, tmp_path: Path) -> None:
    """Recordings go into a store beside the model; the same command again finds it done; the model is the same."""
    tau = TrajectoryDataset.open(data)
    x = np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1)
    for k, name in enumerate(("ann", "ben")):
        np.savez(tmp_path / f"{name}.npz", x=x[tau.agent == k])
    fit = ["fit", str(tmp_path / "ann.npz"), str(tmp_path / "ben.npz"), *BOUNDS, "--out", str(tmp_path / "model")]
    assert main(fit) == 0
    written = (tmp_path / "model.data.h5").stat().st_mtime_ns
    assert main([*fit, "--force"]) == 0
    assert (tmp_path / "model.data.h5").stat().st_mtime_ns == written
    assert (craftrl.load(tmp_path / "model").transform(tau) == craftrl.load(model).transform(tau)).all()


def test_a_store_is_not_read_in_another_way(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = complaint(capsys, "fit", str(data), "--key", "x", "--out", str(tmp_path / "model"))
    assert (
        text
        == f"--key is for recordings that are imported; {data} is a store already; leave it out, or import again.\n"
    )
