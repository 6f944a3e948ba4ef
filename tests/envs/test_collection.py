"""Collection: numbers and names that fit, and on disk nothing overwritten and nothing that cannot go on."""

from hashlib import sha256

import numpy as np
import pytest

from craftrl.data import DatasetWriter, TrajectoryDataset, read_actions, read_true_states
from craftrl.envs import BitsExBMDP, PixelsExBMDP, collect, record
from craftrl.errors import InvalidParameterError

WORLD = BitsExBMDP(4, 5)
POLICIES = WORLD.paper_policies()


# As it was when the studies' rows were made: their worlds must come out the same.
KNOWN = {"bits": "27884709728d", "pixels": "a3dd0f2b541d"}


@pytest.mark.parametrize("name", KNOWN)
def test_one_seed_gives_what_it_always_gave(name):
    pixels = PixelsExBMDP(6, 3, 2, seed=1)
    world, policies = (WORLD, POLICIES) if name == "bits" else (pixels, pixels.policies(4, 0.8, seed=1))
    found = collect(world, policies, 30, seed=5)
    arrays = found.tau.rows(np.arange(found.tau.n)), found.truth.states, found.truth.actions
    assert sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()[:12] == KNOWN[name]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        *(
            (lambda n=n: collect(WORLD, POLICIES, n), "one positive number, or one per policy")
            for n in (0, [3], [3, 0], [])
        ),
        (lambda: collect(BitsExBMDP, POLICIES, 5), "world must be a world, such as"),
        (lambda: collect(WORLD, POLICIES[0], 5), "policies must be a list with the policy of each agent"),
        (lambda: collect(WORLD, POLICIES, 5, seed=-1), "seed must be an integer of at least 0"),
        (lambda: collect(WORLD, POLICIES, 10**9), "2000000000 trajectories must fit into memory"),
        (lambda: WORLD.persistence_policy(2), "stay must be a number from 0 to 1"),
        (
            lambda: PixelsExBMDP(4, 2, 1).find_figure(np.zeros((1, 12, 12, 3)), 2),
            "figure must be an integer from 0 to 1",
        ),
    ],
)
def test_odd_values_get_a_sentence(call, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        call()


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_what_is_on_disk_is_what_was_collected_and_the_same_call_has_nothing_to_do(tmp_path):
    data = tmp_path / "data"
    record(WORLD, POLICIES, 20, data, seed=3)
    again, tau = collect(WORLD, POLICIES, 20, seed=3), TrajectoryDataset.open(data)
    assert np.array_equal(tau.rows(np.arange(tau.n)), again.tau.rows(np.arange(tau.n)))
    assert np.array_equal(read_true_states(data), again.truth.states)
    assert np.array_equal(np.concatenate(read_actions(data)), again.truth.actions)
    before = {file.name: file.stat().st_mtime_ns for file in data.iterdir()}
    record(WORLD, POLICIES, 20, data, seed=3)
    with pytest.raises(InvalidParameterError, match="exists already; remove it, or choose another name"):
        record(WORLD, POLICIES, 20, data, seed=4)
    assert before == {file.name: file.stat().st_mtime_ns for file in data.iterdir()}
    (tmp_path / "file").touch()
    with pytest.raises(InvalidParameterError, match=r"must be writable; .*file is not"):
        record(WORLD, [], 20, tmp_path / "file" / "data", seed=3)
    again.tau.save(tmp_path / "saved")
    with pytest.raises(InvalidParameterError, match="exists already"):
        record(WORLD, [], 20, tmp_path / "saved", seed=3)  # before anything is collected


def test_an_interrupted_recording_goes_on(tmp_path, monkeypatch):
    def killed(writer):
        raise KeyboardInterrupt

    record(WORLD, POLICIES, 20, tmp_path / "whole", seed=3)
    with monkeypatch.context() as patched:
        patched.setattr(DatasetWriter, "_finish", killed)
        with pytest.raises(KeyboardInterrupt):
            record(WORLD, POLICIES, 20, tmp_path / "data", seed=3)
    record(WORLD, POLICIES, 20, tmp_path / "data", seed=3)
    assert contents(tmp_path / "whole") == contents(tmp_path / "data")
