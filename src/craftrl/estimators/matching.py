"""States of different steps that are one and the same, where the world is stationary.

CRAFT numbers the states of each step by itself, and some steps may have got some states wrong. In a stationary
world the encoders of all steps can read every observation. What they say, one reading per step, is a
code word: observations of one state get the same word whatever h they come from, and two states differ in every
letter but those of steps that cannot tell them apart. So states are matched by their words, and each observation
is then decoded: a letter that is wrong is outvoted by the others.

An encoder that never saw a state calls it by the name of another one. Such a letter says nothing, and is not counted
when two states are compared: else states that are reached late, and that most steps do not know, would be lost.

At h = 1 there is one state by definition: all observations there are decoded together.
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
Read = Callable[[Encoder, int], Ints]
OVERLAP = 0.75  # nodes whose words overlap by more than this are one state
DECISIVE = 0.85  # a node whose observations the encoders agree on less than this may be two states in one
STRANGE = 0.5  # an indecisive node that overlaps less with every state is heard after all; so is the start state
RECOGNISED = 0.5  # how much of what is expected of an encoder that saw a state is asked for
FLOOR = 0.01  # probability of a letter that a state was never seen with
SAMPLE = 2000  # trajectories that words are learned from
BLOCK = 512  # observations decoded at once: few enough that what is summed stays in the cache


@dataclass(frozen=True)
class Matching(Savable):
    """Global states 0..n_states-1, found from nodes (h, s): state s of step h.

    nodes     all (h, s) with h >= 2; phi'_1 is constant and says nothing
    overlap   float (nodes, nodes): the share of letters that two nodes have in common, by the steps that know both
    state_of  int (nodes,): the global state of each node, -1 for a node that has no say: its own observations are
              read in two ways, as those of a step that takes two states for one are
    labels    int (n, H): the global state of every observation, decoded; -1 where there is none. At h = 1 it is one
              state: the one that most of the observations there are decoded to, or one of its own
    """

    n_states: int
    nodes: tuple[tuple[int, int], ...]
    overlap: Floats
    state_of: Ints
    labels: NDArray[np.int64]


def match_states(
    encoders: Sequence[Encoder], labels: Ints, tau: TrajectoryDataset, read: Read, seed: int = 0, one_start: bool = True
) -> Matching:
    """Match the states of steps 2..H, and label every observation of the dataset with what comes out.

    `encoders` are phi'_1..phi'_H and `labels` (n, H) the states of each step, -1 for unassigned; `read(phi, h)` is
    what an encoder says of all observations at h. No training is needed. Without `one_start`, the observations at
    h = 1 are decoded as all others are.
    """
    rows = np.sort(np.random.default_rng(seed).permutation(tau.n)[:SAMPLE])
    nodes = [(h, int(s)) for h in range(2, tau.H + 1) for s in np.unique(labels[rows, h - 1]) if s >= 0]
    if not nodes:
        return Matching(0, (), np.zeros((0, 0)), np.zeros(0, dtype=np.int64), np.full(labels.shape, -1))
    readings = [{k: read(encoders[k - 1], h) for k in dict(nodes)} for h in range(1, tau.H + 1)]
    step = np.array([h for h, _ in nodes])
    counts = np.empty((len(nodes), len(nodes)))  # [a, (k, s)]: how many of a's observations phi'_k calls s
    members = np.empty(len(nodes))
    for h in range(2, tau.H + 1):
        mine = np.flatnonzero(step == h)
        own = labels[rows, h - 1] == np.array([[nodes[a][1]] for a in mine]).reshape(-1, 1)
        counts[mine] = own.astype(np.float32) @ _letters(readings[h - 1], nodes, rows)
        members[mine] = own.sum(axis=1)
    words = counts / members[:, None]
    known = _known(counts, words, step)
    overlap = _overlap(words, known, step)
    state_of = _states(words, overlap, step)
    code = np.stack([words[state_of == s].mean(axis=0) for s in range(int(state_of.max()) + 1)])
    decoded = [_decoded(reading, nodes, code, tau.present(h)) for h, reading in enumerate(readings, start=1)]
    n_states = len(code)
    if not one_start:
        return Matching(n_states, tuple(nodes), overlap, state_of, np.stack(decoded, axis=1))
    start = int(np.bincount(decoded[0]).argmax())
    common = np.minimum(_letters(readings[0], nodes, rows).mean(axis=0), code[start]).sum() / len(np.unique(step))
    if common < STRANGE:  # no other step is in the state that all trajectories start in
        start, n_states = n_states, n_states + 1
    decoded[0] = np.full(tau.n, start)
    return Matching(n_states, tuple(nodes), overlap, state_of, np.stack(decoded, axis=1))


def _known(counts: Floats, words: Floats, step: Ints) -> NDArray[np.bool_]:
    """Whether the encoder of each step ever saw the state of a node: [a, k], k being the k-th step in `step`.

    Say phi'_k calls node a (of step h) b. If what it calls b includes a's state, the observations of b have as many
    among them that phi'_h calls a as there are among those of step h that phi'_k calls b. If it never saw a's
    state, they have none.
    """
    nodes = np.arange(len(step))
    steps, own = np.unique(step, return_inverse=True)
    known = np.zeros((len(step), len(steps)), dtype=bool)
    in_step = np.stack([counts[step == k].sum(axis=0) for k in steps])
    for column, k in enumerate(steps):
        theirs = np.flatnonzero(step == k)
        called = theirs[words[:, theirs].argmax(axis=1)]
        expected = counts[nodes, called] / np.maximum(in_step[own, called], 1)
        known[:, column] = (step == k) | ((expected > 0) & (words[called, nodes] >= RECOGNISED * expected))
    return known


def _overlap(words: Floats, known: NDArray[np.bool_], step: Ints) -> Floats:
    """The share of letters that two nodes have in common, by the steps that know both of them; 0 if none does."""
    same, asked = np.zeros((len(step), len(step))), np.zeros((len(step), len(step)))
    for column, k in enumerate(np.unique(step)):
        both = np.logical_and.outer(known[:, column], known[:, column])
        asked += both
        for letter in np.flatnonzero(step == k):
            said = np.flatnonzero(words[:, letter])  # of few nodes
            place = np.ix_(said, said)
            same[place] += both[place] * np.minimum.outer(words[said, letter], words[said, letter])
    return np.asarray(same / np.maximum(asked, 1))


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
    letters = [words[:, step == h] for h in np.unique(step)]  # of a finite class some may be of no state
    agreed = np.mean([np.maximum(said.max(axis=1), 1 - said.sum(axis=1)) for said in letters], axis=0)
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
        heard = np.zeros((len(there[block]), len(code)), dtype=np.float32)
        for k, said in reading.items():
            heard += tables[k][said[block]]
        states.append(heard.argmax(axis=1))
    return np.where(there, np.concatenate(states), -1)
