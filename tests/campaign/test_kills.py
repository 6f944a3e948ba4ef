"""A small part of the campaign: commands that are stopped and given again, two at once, and small disks."""

from campaign import writers
from campaign.disks import fill
from campaign.kills import disturb, table


def test_a_stopped_collect_goes_on_and_two_at_once_do_not_meet():
    found = list(disturb(["collect"], rounds=1, seed=3))
    assert [case["kind"] for case in found] == ["kill", "interrupt", "terminate", "pair"]
    assert [case["said"] for case in found if case["outcome"] == "fault"] == [], table(found)


def test_every_command_that_writes_is_disturbed(monkeypatch):
    assert writers.unlisted() == []
    monkeypatch.delitem(writers.COMMANDS, "report")
    assert writers.unlisted() == ["report --out"]


def test_files_that_may_not_grow_and_outputs_that_nobody_reads():
    found = list(fill(["collect, shards"], rounds=1, seed=1, ways=("file size", "outputs")))
    assert [(case["how"], case["outcome"]) for case in found] == [
        ("file size", "refused"),
        ("output full", "refused"),
        ("output left", "refused"),
        ("output closed", "fits"),
    ], found
