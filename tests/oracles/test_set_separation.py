"""Two sets of observations: a linear discriminant first, a classifier where that does not tell them apart."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.tree import DecisionTreeClassifier

from craftrl import TrajectoryDataset
from craftrl.oracles.classifier import ClassifierOracle
from craftrl.oracles.set_separation import ENOUGH, SetSeparation, linear_discriminant

TREE = DecisionTreeClassifier(min_samples_leaf=5, random_state=0)


def separation(x, cluster, *makers):
    prepared = ClassifierOracle(TREE).prepare(TrajectoryDataset.from_arrays([np.zeros((3, 2, 1))] * 2))
    return SetSeparation(makers, prepared._held_out_pair, x, cluster, seed=0)


def never():
    raise AssertionError("a classifier was trained where none was needed")


def test_a_line_that_tells_two_sets_apart_is_enough():
    x = np.random.default_rng(0).normal(size=(400, 3))
    cluster = np.arange(400) % 4
    x[cluster == 3] += [4, 0, 0]
    sets = separation(x, cluster, linear_discriminant, never)
    assert sets.loss(3, [0, 1]) < 0.2
    with pytest.raises(AssertionError, match="none was needed"):
        sets.loss(2, [0, 1])


def test_sets_alike_are_at_chance_whatever_their_sizes():
    x = np.random.default_rng(0).normal(size=(1200, 3))
    cluster = np.arange(1200) // 60 // 19  # 1140 and 60
    sets = separation(x, cluster, linear_discriminant, lambda: TREE)
    assert sets.loss(1, [0]) == pytest.approx(1.0, abs=0.3)


def test_a_classifier_tells_apart_what_no_line_does():
    x = np.random.default_rng(0).uniform(-1, 1, size=(600, 2))
    cluster = (x[:, 0] * x[:, 1] > 0).astype(int)
    x[:, 0] += np.sign(x[:, 0])  # a tree finds the first cut only where the data is uneven
    assert separation(x, cluster, linear_discriminant).loss(1, [0]) > 0.5
    assert separation(x, cluster, linear_discriminant, lambda: TREE).loss(1, [0]) < 0.5


def test_a_question_is_answered_once_and_looks_at_so_many_rows():
    x = np.random.default_rng(0).normal(size=(2 * ENOUGH + 200, 2))
    cluster = np.repeat([0, 1], [2 * ENOUGH, 200])
    asked = []

    def held_out(maker, rows, label):
        asked.append(np.bincount(label).tolist())
        return np.ones(len(label), dtype=bool), np.zeros((len(label), 2))

    sets = SetSeparation([never], held_out, x, cluster, seed=0)
    assert sets.loss(1, [0]) == sets.loss(1, [0])
    assert asked == [[ENOUGH, 200]]
    assert sets.loss(1, [2]) == 0.0  # there is nothing of it
