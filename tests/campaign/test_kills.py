"""A small part of the campaign: a command that is killed and given again, and two at once."""

from campaign.kills import disturb, table


def test_a_killed_collect_goes_on_and_two_at_once_do_not_meet():
    found = disturb(["collect"], rounds=1, seed=3)
    assert [case["kind"] for case in found] == ["kill", "pair"]
    assert [case["said"] for case in found if case["outcome"] == "fault"] == [], table(found)
