"""What is left to the library: which oracle the data gets, and how the choices read."""

import numpy as np
import pytest

from craftrl import (
    CRAFT,
    ClassifierOracle,
    CoordinateOracle,
    FiniteOracle,
    InvalidDataError,
    InvalidParameterError,
    NeuralOracle,
    TrajectoryDataset,
)
from craftrl.estimators import choices
from craftrl.estimators.choices import choose_oracle, describe
from craftrl.oracles.base import Choice
from shipped import BOUNDS, Bit, fitted, network, rows_of, tree

RNG = np.random.default_rng(0)
BITS = RNG.integers(2, size=(8, 3, 5))
FLOATS = RNG.random((8, 3, 5))
IMAGES = RNG.integers(256, size=(8, 3, 6, 6, 3), dtype=np.uint8)


def tau_of(x):
    return TrajectoryDataset.from_arrays([x[:4], x[4:]])


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (BITS, CoordinateOracle(2)),
        (BITS.astype(bool), CoordinateOracle(2)),
        (BITS * 0, CoordinateOracle(2)),
        (BITS * 4, CoordinateOracle(5)),
        (np.minimum(IMAGES, 15), NeuralOracle()),  # in an image the state is a place, and no single pixel
        (BITS * 16, NeuralOracle()),  # too many values to be states: feature vectors
        (-BITS, NeuralOracle()),
        (FLOATS, NeuralOracle()),
        (IMAGES, NeuralOracle()),
        (IMAGES / 255, NeuralOracle()),
    ],
)
def test_auto_takes_the_oracle_that_the_observations_ask_for(x, expected):
    oracle, (choice,) = choose_oracle("auto", tau_of(x))
    assert oracle == expected
    assert choice.parameter == "oracle"
    assert choice.value == expected
    assert choice.why.endswith(".")


def test_without_torch_feature_vectors_get_boosted_trees(monkeypatch):
    monkeypatch.setattr(choices, "find_spec", lambda name: None)
    oracle, (choice,) = choose_oracle("auto", tau_of(FLOATS))
    assert type(oracle.classifier).__name__ == "HistGradientBoostingClassifier"
    assert "boosted trees" in choice.why


def test_names_stand_for_oracles():
    assert choose_oracle("coordinates", tau_of(BITS))[0] == CoordinateOracle(2)
    assert isinstance(choose_oracle("classifier", tau_of(BITS))[0], ClassifierOracle)
    assert choose_oracle("network", tau_of(BITS))[0] == NeuralOracle()


def test_what_the_user_gives_is_taken_as_it_is():
    given = CoordinateOracle(4)
    assert choose_oracle(given, tau_of(BITS)) == (given, ())
    assert choose_oracle(tree(), tau_of(FLOATS)) == (ClassifierOracle(tree()), ())


@pytest.mark.parametrize(
    ("given", "x", "error", "message"),
    [
        ("auto", IMAGES[..., 0], InvalidDataError, r"observations of shape \(6, 6\) were given; add a channel axis"),
        ("auto", FLOATS[..., 0], InvalidDataError, r"observations of shape \(\) were given"),
        ("coordinates", FLOATS, InvalidDataError, r"needs integers in 0..15; observations of dtype float64"),
        ("coordinates", IMAGES, InvalidDataError, r"integers beyond that were given; convert whole"),
        ("tree", BITS, InvalidParameterError, "'coordinates', 'classifier', 'network'; 'tree' was given"),
        (None, BITS, InvalidParameterError, "oracle must be an Oracle such as .*; None was given"),
        (CoordinateOracle, BITS, InvalidParameterError, "<class .*CoordinateOracle'> was given"),
        (len, BITS, InvalidParameterError, "<built-in function len> was given"),
    ],
)
def test_what_means_no_oracle_is_refused_in_one_sentence(given, x, error, message):
    with pytest.raises(error, match=message):
        choose_oracle(given, tau_of(x))


def test_choices_are_those_that_were_left_to_the_library():
    x, agent = rows_of("bits")
    everything = [choice.parameter for choice in fitted(CRAFT(), x, agent).choices_]
    assert everything == ["oracle", "alpha", "eta", "nu", "coupling", "relabel", "stationary"]
    some = fitted(CRAFT(CoordinateOracle(), alpha=1.0, eta=0.1, coupling="independent"), x, agent)
    assert [choice.parameter for choice in some.choices_] == ["nu", "relabel", "stationary"]
    assert some.choices_[0].value == some.bounds_.nu
    assert fitted(CRAFT.paper(CoordinateOracle(), **BOUNDS), x, agent).choices_ == ()
    assert [choice.parameter for choice in fitted(CRAFT.paper(**BOUNDS), x, agent).choices_] == ["oracle"]


@pytest.mark.parametrize(
    ("oracle", "coupling"),
    [
        (CoordinateOracle(), "markov"),
        (FiniteOracle([Bit(0)]), "markov"),
        (ClassifierOracle(tree()), "independent"),
        (network(), "independent"),
    ],
)
def test_every_oracle_says_how_its_answers_are_read(oracle, coupling):
    suits = {choice.parameter: choice.value for choice in oracle.suits()}
    assert suits == {"coupling": coupling, "relabel": True}


def test_choices_read_as_sentences():
    x, agent = rows_of("bits")
    model = fitted(CRAFT(), x, agent)
    lines = describe(model.choices_)
    assert lines[0] == ("oracle = CoordinateOracle(): observations are integers in 0..1; each entry may be the state.")
    assert lines[1].startswith("alpha = ")
    assert ", eta = " in lines[1]
    assert "the best chain of codes" in lines[1]
    assert "coupling = markov: the class is finite" in lines[2]
    assert all(line.endswith(".") for line in lines)
    assert [str(choice) for choice in model.choices_ if choice.parameter == "coupling"] == [lines[2]]


def test_choices_made_for_one_reason_share_a_sentence():
    made = [Choice("a", 0.123456, "because."), Choice("b", True, "therefore."), Choice("c", "scan", "because.")]
    assert describe(made) == ["a = 0.1235, c = scan: because.", "b = True: therefore."]


def test_choices_of_a_network_name_it_briefly():
    model = fitted(CRAFT(network(), **BOUNDS), *rows_of("features"))
    assert [choice.parameter for choice in model.choices_] == ["states", "stationary"]
    assert "nats of evidence" in model.choices_[0].why
    assert model.choices_[1].setting == "stationary = True"


@pytest.mark.parametrize(("kind", "oracle"), [("images", network), ("features", network), ("features", tree)])
def test_one_encoder_serves_all_steps_of_what_is_trained_unless_told_otherwise(kind, oracle):
    assert hasattr(fitted(CRAFT(oracle()), *rows_of(kind)), "encoder_")
    by_step = fitted(CRAFT(oracle(), stationary=False), *rows_of(kind))
    assert not hasattr(by_step, "encoder_")
    assert by_step.rounds_
    assert by_step.choices_[0].value == sum(by_step.n_states_)
