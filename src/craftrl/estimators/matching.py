"""States of different steps that are one and the same, where the world is stationary.

CRAFT numbers the states of each step by itself, and some steps may have got some states wrong. In a stationary
world the encoders of all steps can read every observation. What they say, one reading per step, is a
code word: observations of one state get the same word whatever h they come from, and two states differ in every
letter but those of steps that cannot tell them apart. So states are matched by their words, and each observation
is then decoded: a letter that is wrong is outvoted by the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from craftrl.core.encoders import Encoder
from craftrl.core.saved import Savable
from craftrl.data.dataset import TrajectoryDataset

__all__ = ["Matching", "match_states"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
Read = Callable[[Encoder, TrajectoryDataset, int], Ints]
OVERLAP = 0.75  # nodes whose words overlap by more than this are one state
DECISIVE = 0.85  # a node whose observations the encoders agree on less than this may be two states in one
STRANGE = 0.5  # an indecisive node that overlaps less with every state is heard after all
FLOOR = 0.01  # probability of a letter that a state was never seen with
SAMPLE = 2000  # trajectories that words are learned from
BLOCK = 4096  # observations decoded at once


@dataclass(frozen=True)
class Matching(Savable):
    """Global states 0..n_states-1, found from nodes (h, s): state s of step h.

    nodes     all (h, s) with h >= 2; phi'_1 is constant and says nothing
    overlap   float (nodes, nodes): the share of letters that two nodes have in common
    state_of  int (nodes,): the global state of each node, -1 for a node that has no say: its own observations are
              read in two ways, as those of a step that takes two states for one are
    labels    int (n, H): the global state of every observation, decoded; -1 where there is none
    """

    n_states: int
    nodes: tuple[tuple[int, int], ...]
    overlap: Floats
    state_of: Ints
    labels: NDArray[np.int64]


def match_states(
    encoders: Sequence[Encoder], labels: Ints, tau: TrajectoryDataset, read: Read, seed: int = 0
) -> Matching:
    """Match the states of steps 2..H, and label every observation of the dataset with what comes out.

    `encoders` are phi'_1..phi'_H and `labels` (n, H) the states of each step, -1 for unassigned; `read(phi, tau, h)`
    is what an encoder says of all observations at h. No training is needed.
    """
    rows = np.sort(np.random.default_rng(seed).permutation(tau.n)[:SAMPLE])
    nodes = [(h, int(s)) for h in range(2, tau.H + 1) for s in np.unique(labels[rows, h - 1]) if s >= 0]
    if not nodes:
        return Matching(0, (), np.zeros((0, 0)), np.zeros(0, dtype=np.int64), np.full(labels.shape, -1))
    readings = [{k: read(encoders[k - 1], tau, h) for k in dict(nodes)} for h in range(1, tau.H + 1)]
    words = np.empty((len(nodes), len(nodes)))  # [a, (k, s)]: share of a's observations that phi'_k calls s
    for h in range(2, tau.H + 1):
        mine = [a for a, (step, _) in enumerate(nodes) if step == h]
        members = labels[rows, h - 1] == np.array([[nodes[a][1]] for a in mine]).reshape(-1, 1)
        letters = _letters(readings[h - 1], nodes, rows)
        words[mine] = members.astype(np.float32) @ letters / members.sum(axis=1, keepdims=True)
    overlap = np.stack([np.minimum(words, word).sum(axis=1) for word in words]) / (tau.H - 1)
    state_of = _states(words, overlap, np.array([h for h, _ in nodes]))
    n_states = int(state_of.max()) + 1
    code = np.stack([words[state_of == s].mean(axis=0) for s in range(n_states)])
    decoded = [_decoded(reading, nodes, code, tau.present(h)) for h, reading in enumerate(readings, start=1)]
    return Matching(n_states, tuple(nodes), overlap, state_of, np.stack(decoded, axis=1))


def _letters(reading: Mapping[int, Ints], nodes: Sequence[tuple[int, int]], rows: Ints | slice) -> NDArray[np.float32]:
    """What every step's encoder calls each observation: 1 at the node (k, s) if phi'_k says s; (rows, nodes)."""
    return np.stack([reading[k][rows] == s for k, s in nodes], axis=1).astype(np.float32)


def _groups(overlap: Floats) -> Ints:
    """Average linkage: nodes whose words overlap by more than OVERLAP on average are one; numbered from 0."""
    if len(overlap) < 2:
        return np.zeros(len(overlap), dtype=np.int64)
    distance = 1 - overlap
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), method="average")
    return fcluster(tree, t=1 - OVERLAP, criterion="distance").astype(np.int64) - 1


def _states(words: Floats, overlap: Floats, step: Ints) -> Ints:
    """Group the decisive nodes; an indecisive one, which would tie two states together, counts only if it is like
    none of them. A quarter of the nodes at most is left out."""
    agreed = np.mean([words[:, step == h].max(axis=1) for h in np.unique(step)], axis=0)
    heard = agreed >= min(DECISIVE, float(np.quantile(agreed, 0.25)))
    state_of = np.full(len(step), -1)
    state_of[heard] = _groups(overlap[np.ix_(heard, heard)])
    strange = ~heard & (overlap[:, heard].max(axis=1) < STRANGE)
    if strange.any():
        state_of[strange] = state_of.max() + 1 + _groups(overlap[np.ix_(strange, strange)])
    return state_of


def _decoded(
    reading: Mapping[int, Ints], nodes: Sequence[tuple[int, int]], code: Floats, there: NDArray[np.bool_]
) -> Ints:
    """The most likely state of every observation of one step, letters being independent; in blocks."""
    log_code = np.log(np.maximum(code, FLOOR)).astype(np.float32)
    step, letter = np.array(nodes).T
    tables = {}  # of step k: what each letter says for each state, nothing for a letter that is no node
    for k in reading:
        tables[k] = np.zeros((max(int(reading[k].max(initial=0)), int(letter.max())) + 2, len(code)), dtype=np.float32)
        tables[k][letter[step == k]] = log_code[:, step == k].T
    states = []
    for start in range(0, len(there), BLOCK):
        block = slice(start, start + BLOCK)
        states.append(sum(tables[k][said[block]] for k, said in reading.items()).argmax(axis=1))
    return np.where(there, np.concatenate(states), -1)
