"""What is read from a store, and by whom: no more than is needed, by other processes, beside the garbage collector."""

import gc
import json
import multiprocessing
import pickle

import numpy as np
import pytest
from craftrl.data.attempts import attempted
from craftrl.data.places import place
from craftrl.data.shards import Shard, ShardSteps, read_lengths, read_manifest

from craftrl import TrajectoryDataset
from craftrl.data import ranges
from craftrl.data.files import write_json
from stored import same


def test_only_the_arrays_that_are_needed_are_read(s3):
    rng = np.random.default_rng(0)
    x = [rng.integers(0, 256, size=(2000, 6, 100), dtype=np.uint8) for _ in range(2)]
    TrajectoryDataset.from_arrays(x).save("s3://bucket/large")
    with s3.counting() as opening:
        opened = TrajectoryDataset.open("s3://bucket/large")
    assert sum(n for method, _, n in opening if method == "GET") < 2 * 2**16 + 2 * 20_000 + 10_000
    with s3.counting() as reading:
        x_3 = opened.at(3)
    assert np.array_equal(x_3, np.concatenate([own[:, 2] for own in x]))
    assert len(reading) == 2  # one request for each of the two shards
    assert x_3.nbytes <= sum(n for _, _, n in reading) < 1.01 * x_3.nbytes


def read_and_write(steps, to):
    write_json(to, {"written by": "a worker"})
    return steps.read(1, 0, 3)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_shards_can_be_sent_to_another_process(s3, tau):
    tau.save("s3://bucket/sent")
    manifest = read_manifest("s3://bucket/sent")
    shard = manifest.shards[1]
    assert isinstance(shard, Shard)
    assert np.array_equal(read_lengths(pickle.loads(pickle.dumps(shard))), tau.lengths[300:])
    steps = ShardSteps([shard.file], [0, shard.n], manifest.H, manifest.obs_shape, manifest.dtype)
    with multiprocessing.get_context("fork").Pool(1) as pool:  # while this process has connections of its own
        found = pool.apply(read_and_write, (steps, place("s3://bucket/row.json")))
    assert json.loads(place("s3://bucket/row.json").read_text()) == {"written by": "a worker"}
    assert np.array_equal(found, tau.steps.read(1, 300, 303))


def test_an_hdf5_file_is_read_with_the_garbage_collector_off(tau, monkeypatch):
    """It may run in any thread; in fsspec's, it would wait for h5py's lock, which the waiting reader holds."""
    pytest.importorskip("fsspec")
    tau.save("memory://collector.h5")
    seen = []

    def noted(url, doing, function):
        seen.append(gc.isenabled())
        return attempted(url, doing, function)

    monkeypatch.setattr(ranges, "attempted", noted)
    same(TrajectoryDataset.open("memory://collector.h5"), tau)
    assert seen
    assert not any(seen)
    assert gc.isenabled()
