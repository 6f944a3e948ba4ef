"""What is a URL and what a file with an odd name; and what has to be on a disk of this machine."""

import pickle
from pathlib import Path

import pytest
from craftrl.data.places import place, source, target
from craftrl.data.remote import Remote
from craftrl.data.truth import truth_path

import craftrl
from craftrl import InvalidParameterError
from craftrl.cli import main
from craftrl.errors import RemoteError


def test_what_is_a_url_and_what_is_a_file_with_an_odd_name(tmp_path):
    assert isinstance(place("s3://bucket/x"), Remote)
    for name in ("C:/data.h5", "C://data.h5", "12:30.h5", "a:b/c", "s3:/bucket/x"):
        assert isinstance(place(name), Path)
    assert place(f"file://{tmp_path}/x") == tmp_path / "x"
    with pytest.raises(InvalidParameterError, match="takes one away"):
        source("The dataset", Path("s3://bucket/x"))
    with pytest.raises(InvalidParameterError, match=r"must have a name in a bucket, such as s3://bucket/name"):
        target("The model", "s3://bucket/")
    for odd in ("s3://", "s3://bucket/../x"):
        with pytest.raises(InvalidParameterError, match="must be a path or a URL"):
            source("The dataset", odd)


def test_a_remote_name_is_taken_apart_as_a_path_is():
    at = place("s3://bucket/folder/data.h5/")
    assert (at.name, at.stem, at.suffix, str(at.parent)) == ("data.h5", "data", ".h5", "s3://bucket/folder")
    assert str(at.with_name("x") / "y") == "s3://bucket/folder/x/y"
    assert truth_path(at) == Remote("s3://bucket/folder/data.truth.npz")
    assert pickle.loads(pickle.dumps(at)) == at


def test_what_must_be_local_says_so(tmp_path, capsys):
    assert main(["import", str(tmp_path), "--out", "s3://bucket/data.h5"]) == 2
    told = capsys.readouterr().err
    assert "The store must be on a disk of this machine; 's3://bucket/data.h5' was given; use a local file" in told
    with pytest.raises(RemoteError, match="must be of a kind that fsspec knows; nosuch:// was given"):
        craftrl.load("nosuch://x/y")
