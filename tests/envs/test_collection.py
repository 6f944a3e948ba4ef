"""Collection: numbers and names that fit, and on disk nothing overwritten and nothing that cannot go on."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from craftrl.data import DatasetWriter, TrajectoryDataset, read_actions, read_true_states
from craftrl.envs import BitsExBMDP, PixelsExBMDP, collect, record
from craftrl.errors import InvalidParameterError

WORLD = BitsExBMDP(4, 5)
POLICIES = WORLD.paper_policies()


@pytest.mark.parametrize("n", [0, [3], [3, 0], []])
def test_numbers_of_episodes_must_fit_the_policies(n: int | list[int]) -> None:
    with pytest.raises(InvalidParameterError, match="one positive number, or one per policy"):
        collect(WORLD, POLICIES, n, seed=0)


# As it was when the studies' rows were made: their worlds must come out the same.
KNOWN = {"bits": "27884709728d", "pixels": "a3dd0f2b541d"}


@pytest.mark.parametrize("name", KNOWN)
def test_one_seed_gives_what_it_always_gave(name: str) -> None:
    pixels = PixelsExBMDP(6, 3, 2, seed=1)
    world, policies = (WORLD, POLICIES) if name == "bits" else (pixels, pixels.policies(4, 0.8, seed=1))
    found = collect(world, policies, 30, seed=5)
    arrays = found.tau.rows(np.arange(found.tau.n)), found.truth.states, found.truth.actions
    assert sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()[:12] == KNOWN[name]


def odd_calls() -> dict[str, tuple[Callable[[], object], str]]:
    pixels = PixelsExBMDP(4, 2, 1)
    return {
        "world": (lambda: collect(BitsExBMDP, POLICIES, 5), "world must be a world, such as"),
        "policies": (lambda: collect(WORLD, POLICIES[0], 5), "policies must be a list with the policy of each agent"),
        "seed": (lambda: collect(WORLD, POLICIES, 5, seed=-1), "seed must be an integer of at least 0"),
        "memory": (lambda: collect(WORLD, POLICIES, 10**9), "2000000000 trajectories must fit into memory"),
        "stay": (lambda: WORLD.persistence_policy(2), "stay must be a number from 0 to 1"),
        "figure": (lambda: pixels.find_figure(np.zeros((1, 12, 12, 3)), 2), "figure must be an integer from 0 to 1"),
    }


@pytest.mark.parametrize("name", odd_calls())
def test_odd_values_get_a_sentence(name: str) -> None:
    call, sentence = odd_calls()[name]
    with pytest.raises(InvalidParameterError, match=sentence):
        call()


def test_what_is_on_disk_is_what_was_collected(tmp_path: Path) -> None:
    record(WORLD, POLICIES, 20, tmp_path / "data", seed=3)
    again = collect(WORLD, POLICIES, 20, seed=3)
    tau = TrajectoryDataset.open(tmp_path / "data")
    assert np.array_equal(tau.rows(np.arange(tau.n)), again.tau.rows(np.arange(tau.n)))
    assert np.array_equal(read_true_states(tmp_path / "data"), again.truth.states)
    assert np.array_equal(np.concatenate(read_actions(tmp_path / "data")), again.truth.actions)


def test_the_same_call_again_has_nothing_to_do_and_other_data_stays(tmp_path: Path) -> None:
    record(WORLD, POLICIES, 20, tmp_path / "data", seed=3)
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in (tmp_path / "data").iterdir()}
    record(WORLD, POLICIES, 20, tmp_path / "data", seed=3)
    with pytest.raises(InvalidParameterError, match="exists already; remove it, or choose another name"):
        record(WORLD, POLICIES, 20, tmp_path / "data", seed=4)
    assert before == {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in (tmp_path / "data").iterdir()}
    collect(WORLD, POLICIES, 20, seed=3).tau.save(tmp_path / "saved")
    with pytest.raises(InvalidParameterError, match="exists already"):
        record(WORLD, [], 20, tmp_path / "saved", seed=3)  # before anything is collected


def test_an_interrupted_recording_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(writer: DatasetWriter) -> None:
        raise KeyboardInterrupt

    record(WORLD, POLICIES, 20, tmp_path / "whole", seed=3)
    with monkeypatch.context() as patched:
        patched.setattr(DatasetWriter, "_finish", killed)
        with pytest.raises(KeyboardInterrupt):
            record(WORLD, POLICIES, 20, tmp_path / "data", seed=3)
    record(WORLD, POLICIES, 20, tmp_path / "data", seed=3)
    whole, data = ({f.name: f.read_bytes() for f in (tmp_path / name).iterdir()} for name in ("whole", "data"))
    assert whole == data
