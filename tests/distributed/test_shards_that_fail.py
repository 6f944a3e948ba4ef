"""Shards and options that cannot be had: one sentence each, and nothing is left behind."""

import json

import numpy as np
import pytest

from craftrl import CRAFT, ClassifierOracle, CoordinateOracle, TrajectoryDataset
from craftrl.data.seals import sealed
from craftrl.distributed import LocalExecutor, encode_on_shards, fit_on_shards
from craftrl.distributed.parts import packed
from craftrl.errors import CraftError, InvalidDataError, InvalidParameterError
from sharding import LOCAL, write_shards


@pytest.fixture
def folder(tmp_path):
    return made(tmp_path / "shards")


def made(folder, H=3, seed=0, size=30, agents=2):
    rng = np.random.default_rng(seed)
    x = [rng.integers(0, 2, size=(60, H, 4), dtype=np.uint8) for _ in range(agents)]
    return write_shards(TrajectoryDataset.from_arrays(x), folder, size)


def fit(folder, executor=LOCAL, **given):
    return fit_on_shards(CRAFT(**given), folder, executor)


class Meddling(LocalExecutor):
    """Does something to the data just before the shards are read into bit planes."""

    def __init__(self, meddle):
        object.__setattr__(self, "meddle", meddle)

    def submit(self, function, *args):
        if function is packed:
            self.meddle()
        return function(*args)


def one_sentence(error):
    text = str(error.value)
    assert isinstance(error.value, CraftError)
    assert "\n" not in text
    assert text.endswith(".")
    return text


def test_a_shard_that_changes_during_the_run(folder, tmp_path):
    other = made(tmp_path / "other", seed=1)
    change = Meddling(lambda: (folder / "shard_00001.npz").write_bytes((other / "shard_00001.npz").read_bytes()))
    with pytest.raises(InvalidDataError, match=r"shard_00001\.npz has changed since") as error:
        fit(folder, change, oracle=CoordinateOracle())
    one_sentence(error)


def test_a_whole_shard_in_the_place_of_another(folder):
    (folder / "shard_00001.npz").write_bytes((folder / "shard_00000.npz").read_bytes())
    with pytest.raises(InvalidDataError, match=r"shard_00001\.npz holds other trajectories") as error:
        fit(folder, oracle=CoordinateOracle())
    one_sentence(error)


def test_a_shard_that_vanishes_during_the_run(folder):
    vanish = Meddling(lambda: (folder / "shard_00002.npz").unlink(missing_ok=True))
    with pytest.raises(InvalidDataError, match=r"shard_00002\.npz is missing") as error:
        fit(folder, vanish, oracle=CoordinateOracle())
    one_sentence(error)


def test_a_shard_of_another_horizon(folder, tmp_path):
    longer = made(tmp_path / "longer", H=4)
    (folder / "shard_00003.npz").write_bytes((longer / "shard_00003.npz").read_bytes())
    with pytest.raises(InvalidDataError, match=r"All shards must have H = 3 steps.*shard_00003\.npz has 4") as error:
        fit(folder)
    one_sentence(error)


@pytest.mark.parametrize("text", ["", "{}", '{"format": "something else"}'])
def test_a_foreign_manifest(folder, text):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(InvalidDataError, match="must be a folder of shards") as error:
        fit(folder)
    one_sentence(error)


def test_what_is_no_folder(tmp_path):
    (tmp_path / "file.h5").write_bytes(b"")
    for name, what in (("file.h5", "is a file"), ("nothing", "is not there")):
        with pytest.raises(InvalidDataError, match=what) as error:
            fit(tmp_path / name)
        one_sentence(error)


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        (lambda s: s[2:] + s[:2], "grouped by agent"),
        (lambda s: s[:2], "at least two agents"),
        (lambda s: [*s[:2], *({**x, "agent": 2} for x in s[2:])], "at least two agents, and some of each"),
    ],
)
def test_agents_that_are_missing_or_mixed(folder, shards, message):
    content = json.loads((folder / "manifest.json").read_text())
    del content["checksum"]
    content["shards"] = shards(content["shards"])
    (folder / "manifest.json").write_text(json.dumps(sealed(content)))
    with pytest.raises(InvalidDataError, match=message) as error:
        fit(folder)
    one_sentence(error)


def test_what_cannot_be_had_on_shards(folder, tmp_path):
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(InvalidParameterError, match="needs a finite class") as error:
        fit(folder, oracle=ClassifierOracle(LogisticRegression()))
    one_sentence(error)
    with pytest.raises(InvalidParameterError, match="stationary=True was given") as error:
        fit(folder, stationary=True)
    one_sentence(error)
    with pytest.raises(InvalidParameterError, match="model must be a CRAFT") as error:
        fit_on_shards(CoordinateOracle(), folder, LOCAL)
    one_sentence(error)
    large = TrajectoryDataset.from_arrays([np.full((4, 2, 3), 2, dtype=np.uint8)] * 2)
    large_too = write_shards(large, tmp_path / "large", 2)
    with pytest.raises(InvalidDataError, match=r"Coordinates must lie in 0\.\.1"):
        fit(large_too, oracle=CoordinateOracle())


def test_a_failed_fit_leaves_the_model_as_it_was(folder):
    model = CRAFT(CoordinateOracle(), alpha=1.0, eta=0.2, nu=0.1, coupling="chain")
    with pytest.warns(match="no better than chance"):
        fit_on_shards(model, folder, LOCAL)
    before = vars(model).copy()
    (folder / "shard_00000.npz").unlink()
    with pytest.raises(InvalidDataError):
        fit_on_shards(model, folder, LOCAL)
    assert vars(model) == before


def test_states_are_written_whole_or_not_at_all(folder, tmp_path):
    with pytest.warns(match="no better than chance"):
        model = fit(folder, oracle=CoordinateOracle(), alpha=1.0, eta=0.2, nu=0.1, coupling="chain")

    class Fails(LocalExecutor):
        def submit(self, function, *args):
            result = function(*args)
            (folder / "shard_00003.npz").unlink(missing_ok=True)
            return result

    with pytest.raises(InvalidDataError, match="shard_00003"):
        encode_on_shards(model, folder, tmp_path / "states", Fails())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shards"]


def test_data_whose_losses_would_not_fit_into_64_bits():
    from craftrl.core.limits import check_sums, widest_coupling

    assert widest_coupling("markov", [10**7] * 29, 2, 2) == "markov"
    assert widest_coupling("markov", [2 * 10**8] * 29, 2, 2) == "chain"
    assert widest_coupling("tied", [10**9] * 29, 2, 2) == "independent"
    check_sums("independent", [10**9] * 29, 2, 2)
    check_sums("chain", [10**8] * 29, 2, 2)
    check_sums("markov", [10**7] * 29, 2, 2)
    for coupling, n in (("chain", 10**9), ("posterior", 10**9), ("markov", 2 * 10**8), ("tied", 2 * 10**8)):
        with pytest.raises(InvalidParameterError, match=f"coupling='{coupling}' adds up") as error:
            check_sums(coupling, [n] * 29, 2, 2)
        one_sentence(error)


@pytest.mark.filterwarnings("ignore::craftrl.AssumptionWarning")
def test_left_to_itself_a_fit_takes_a_coupling_that_can_add_up_all_losses(folder, monkeypatch):
    from craftrl.core import limits

    monkeypatch.setattr(limits, "FIXED_POINT", 2.0**56)  # as if there were 2^26 times as many trajectories
    given = {"oracle": CoordinateOracle(), "alpha": 1.0, "eta": 0.1, "nu": 0.1}
    for model in (fit(folder, **given), CRAFT(**given).fit(folder)):
        (taken,) = [choice for choice in model.choices_ if choice.parameter == "coupling"]
        assert taken.value == "independent"
        assert 'more than "markov" can add up' in str(taken)
    with pytest.raises(InvalidParameterError, match="coupling='markov' adds up losses of all steps in 64 bits"):
        CRAFT(**given, coupling="markov").fit(folder)
