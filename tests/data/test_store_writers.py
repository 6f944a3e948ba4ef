"""Folders in a store are whole or not there: damage, killed writers, two writers at once, and copies."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from craftrl.data.places import place
from craftrl.data.shards import ShardWriter, read_manifest

import craftrl
from craftrl import InvalidDataError, InvalidParameterError, TrajectoryDataset
from craftrl.cli import main
from craftrl.envs import BitsExBMDP, collect
from s3_server import keys
from stored import H, M, fitted, same


def read_all(where):
    opened = TrajectoryDataset.open(where)
    return [opened.at(h) for h in range(1, opened.H + 1)]


def test_equal_data_makes_equal_folders_and_the_manifest_says_what_is_whole(s3, tau, small_blocks):
    for name in ("a", "b"):
        tau.save(f"s3://bucket/equal/{name}")
    first, second = (sorted(key.rpartition("/")[2] for key in keys(s3, f"equal/{name}/")) for name in "ab")
    assert first == second
    content = json.loads(place("s3://bucket/equal/a/manifest.json").read_text())
    for shard in content["shards"]:
        data = place(f"s3://bucket/equal/a/{shard['file']}").read_bytes()
        assert shard["bytes"] == len(data)
        assert shard["sha256"][:12] in shard["file"]


@pytest.mark.parametrize("harm", ["missing", "short", "long", "flipped", "manifest"])
def test_damage_is_refused_in_one_sentence(s3, tau, harm, small_blocks):
    folder = place(f"s3://bucket/damage-{harm}")
    tau.save(folder)
    shard = read_manifest(folder).shards[1].file
    data = shard.read_bytes()
    if harm == "missing":
        shard.unlink()
    elif harm == "manifest":
        (folder / "manifest.json").write_bytes((folder / "manifest.json").read_bytes()[:-40])
    else:
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        shard.write_bytes({"short": data[:-100], "long": data + b"x", "flipped": flipped}[harm])
    with pytest.raises(InvalidDataError, match="write or copy it again") as told:
        read_all(folder)
    assert str(told.value).count(". ") == 0


def test_a_shard_that_changes_after_it_was_opened_is_noticed(s3, tau, small_blocks):
    folder = place("s3://bucket/changing")
    tau.save(folder)
    opened = TrajectoryDataset.open(folder)
    first = opened.steps.files[0]
    data = first.read_bytes()
    middle = len(data) // 2
    first.write_bytes(data[:middle] + bytes(100) + data[middle + 100 :])
    with pytest.raises(InvalidDataError, match="Every shard must be whole"):
        list(map(opened.at, range(1, H + 1)))
    first.unlink()
    with pytest.raises(InvalidDataError, match="missing"):
        pickle.loads(pickle.dumps(opened)).at(1)  # what a worker gets: nothing is kept


def test_a_killed_writer_leaves_nothing_that_is_read_and_the_same_again_cleans_up(s3, tmp_path, capsys):
    """The process is killed while its second shard is on the way."""
    command = ["collect", "--world", "bits", "--horizon", "4", "--features", "8", "--n", "50", "--out"]
    where = "s3://bucket/killed/data"
    with s3.failing("PUT", "killed/data/shard_00001", "hang") as fault:
        process = subprocess.Popen([sys.executable, "-m", "craftrl", *command, where], stderr=subprocess.PIPE)
        try:
            assert fault.met.wait(60)
        finally:
            process.kill()
            process.communicate()
    (left,) = [key for key in keys(s3, "killed/") if "shard" in key]
    assert left.startswith("killed/data/shard_00000.")
    with pytest.raises(InvalidDataError, match=r"has no whole manifest\.json"):
        TrajectoryDataset.open(where)
    abandoned = place("s3://bucket/killed/data/shard_00000.0123456789ab.npz")
    abandoned.write_bytes(b"of another try")
    assert main([*command, where]) == 0
    assert TrajectoryDataset.open(where).n == 100
    assert not abandoned.exists()
    assert len(keys(s3, "killed/data/")) == 3


def test_of_two_writers_at_once_the_second_is_refused_and_the_first_is_whole(s3, tau, small_blocks):
    where = "s3://bucket/two/data"
    other = collect(BitsExBMDP(horizon=H, n_features=M, seed=5), [*_policies()], [60, 60], seed=2).tau
    first = ShardWriter(where, H, (M,), np.uint8).__enter__()
    second = ShardWriter(where, H, (M,), np.uint8).__enter__()
    for writer, data in ((first, tau), (second, other)):
        for k in (0, 1):
            rows = data.agent_slice(k)
            x = np.stack([data.steps.read(step, rows.start, rows.stop) for step in range(H)], axis=1)
            writer.append(k, x)
    first.__exit__(None, None, None)
    with pytest.raises(InvalidParameterError, match="finished by somebody else meanwhile"):
        second.__exit__(None, None, None)
    same(TrajectoryDataset.open(where), tau)
    named = {shard.file.name for shard in read_manifest(where).shards}
    assert {key.rpartition("/")[2] for key in keys(s3, "two/data/")} == named | {"manifest.json"}


def _policies():
    return BitsExBMDP(horizon=H, n_features=M, seed=5).paper_policies()


def test_a_model_in_a_store_is_the_file_that_it_is_on_a_disk(s3, tau, tmp_path):
    model = fitted(tau)
    model.save("s3://bucket/copied/model")
    content = place("s3://bucket/copied/model").read_bytes()
    (tmp_path / "model").write_bytes(content)
    assert np.array_equal(craftrl.load(tmp_path / "model").transform(tau), model.transform(tau))
    place("s3://bucket/copied/cut").write_bytes(content[:-1])
    with pytest.raises(InvalidDataError, match="its checksum does not fit"):
        craftrl.load("s3://bucket/copied/cut")


def test_a_folder_of_shards_copied_to_a_store_is_read_there(s3, tau, tmp_path, small_blocks):
    tau.save(tmp_path / "shards")
    for file in (tmp_path / "shards").iterdir():
        place(f"s3://bucket/shards-copied/{file.name}").upload(file)
    same(TrajectoryDataset.open("s3://bucket/shards-copied"), tau)
