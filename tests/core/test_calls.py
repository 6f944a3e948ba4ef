"""The one place that asks oracles counts and times what they are asked."""

from craftrl import CRAFT
from shipped import BOUNDS, ORACLES, fitted, rows_of


def test_a_fit_says_what_it_asked():
    model = fitted(CRAFT(ORACLES["coordinates"][1](), **BOUNDS), *rows_of("bits"))
    asked = {use.question: use.asked for use in model.trace_.oracle_use}
    assert asked["log-odds"] == 1
    assert asked["separation"] == asked["encoding"] == model.labels_.shape[1] - 1


def test_settings_are_tried_on_learned_log_odds_too():
    kind, make = ORACLES["classifier"]
    model = fitted(CRAFT(make(), alpha=1.0, nu=0.1, stationary=False), *rows_of(kind))
    asked = {use.question: use.asked for use in model.trace_.oracle_use}
    assert asked["log-odds"] == 3  # eta changes the grid
    assert "of 3 settings tried" in model.choices_[0].why
