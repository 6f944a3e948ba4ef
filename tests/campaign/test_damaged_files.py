"""A small part of the campaign: damaged files are refused or read as they were, whatever was done to them."""

import random

import pytest

from campaign.files import FAULTS, damage, summary
from campaign.mutations import mutate


def test_no_damaged_file_passes_unnoticed():
    formats = ["store", "dataset", "dataset in a store", "truth", "model", "NPZ", "CSV"]
    cases = damage(formats, range(1000, 1012), workers=1)
    assert [case for case in cases if case["outcome"] in FAULTS] == []
    assert sum(case["outcome"] == "refused" for case in cases) > len(cases) / 2, summary(cases)


@pytest.mark.parametrize("name", ["data.h5", "config.json"])
def test_mutations_change_the_file_and_repeat(tmp_path, name):
    whole = b'{"a": [1, {"b": 2}], "c": "text", "d": null}' * (1 if name.endswith("json") else 40)
    changed = 0
    for seed in range(60):
        results = []
        for _ in range(2):
            (tmp_path / name).write_bytes(whole)
            mutate(tmp_path / name, random.Random(seed))
            results.append((tmp_path / name).read_bytes())
        assert results[0] == results[1]
        changed += results[0] != whole
    assert changed > 50
