"""From what was learned and tested to findings: what `fit` keeps and warns of, and what `diagnose` adds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from craftrl.arrays import Floats, Ints
from craftrl.core.craft import Result
from craftrl.core.evidence import CONTRADICTED, LEVEL, dependence, log_gamma_tail
from craftrl.core.findings import Finding
from craftrl.core.labels import Labels, crossed, n_labels
from craftrl.core.oracle import Coupling
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.ranks import is_first_rank
from craftrl.diagnostics.mixtures import Mixture
from craftrl.diagnostics.stability import Stability
from craftrl.diagnostics.state_tests import StateTests
from craftrl.diagnostics.sufficiency import Sufficiency
from craftrl.errors import AssumptionWarning

# None of these is a proof; docs/is-it-right.md says what each is worth.
MAJORITY = 0.5  # of the steps, or of the trajectories
ENOUGH_ASSIGNED = 0.95  # of the trajectories that are there at a step
SEEN = 0.01  # of the observations of a step: what fewer of them show is no state that is missing
UNSURE, DOUBTED = 0.1, 0.5  # weight of chains that read otherwise: below, they are ruled out; above, likelier than not
FEW_VISITS, HEAVY = 30, 8  # moves that fewer make are worth a word, if Line 19 sees them: nu/8 of the trajectories
MIN_TRAJECTORIES = 20
# Nats that states lose of what log-odds tell of the agents, and the least share that they hold.
MIN_LOST, MIN_CAPTURED = 20.0, 0.7
MIN_EVIDENCE = 5.0  # nats that speak for a partition: agents that do not differ reach 3
MIN_EMBEDDING_R2 = 0.5
MIN_STABILITY = 0.8  # at any step; the score asks for more in the mean
MIN_READ = 0.95  # of the observations that were not learned from: those that are read as they were found
FEW_UNSEEN = 10  # trajectories, from which nothing is known well
MIN_SURE_SHARE = 0.7  # of what log-odds tell of the agents: the states' share must not be below this, by two errors


def warn(findings: Sequence[Finding], stacklevel: int) -> None:
    """One warning for all that speaks against the states."""
    found = [str(finding) for finding in findings if finding.severity == "warning"]
    if found and is_first_rank():
        warnings.warn(" ".join(found), AssumptionWarning, stacklevel=stacklevel + 1)


def findings_of_steps(
    result: Result, tau: TrajectoryDataset, nu: float, coupling: Coupling, tests: StateTests | None
) -> Iterator[Finding]:
    """Of states that were found step by step, or by one choice in a finite class, whose `tests` they then have.

    Log-odds at chance; states that no encoder reads, or that the data contradicts; no state, one or too many; several
    starts; trajectories without a state; moves that are hardly seen.
    """
    trace, labels = result.trace, result.labels
    yield from _at_chance(result, tau, tests)
    if tests is not None:
        if steps := tuple(trace.unreadable()):
            # What the encoders read is weighed by itself, where it is: then clusters may be mixed without harm.
            worst = max(trace[h - 1].encoder_loss for h in steps)
            yield Finding("misread", steps, {"worst": worst}, "note" if tests.doubted < UNSURE else "warning")
        yield from _contradicted(tests)
        if tests.doubted > DOUBTED:
            doubt = tests.doubt > min(UNSURE, tests.doubt.max() / 2)
            yield Finding("undecided", _where(doubt), {"share": tests.doubted})
        if steps := _where(tests.unnamed > SEEN):
            yield Finding("states missing", steps, {"share": float(tests.unnamed.max())})
    outcomes = trace.outcomes()
    for kind, at in outcomes.items():
        mostly = len(at) > MAJORITY * len(trace)
        if kind == "no state" or mostly:  # at some steps one state may be all there is, and labels are read again
            yield Finding(kind, tuple(at))
        elif kind == "too many states":
            yield Finding(kind, tuple(at), severity="note")
    if outcomes and tests is not None and coupling == "independent" and not _one_encoder(result):
        yield Finding("independent steps", severity="note")
    if trace.start is not None:
        if trace.start.agents_differ:
            yield Finding("first observations differ", (1,), {"p": trace.start.p_first})
        if trace.start.several:
            yield Finding("several starts", (1,), {"share": trace.start.share, "p": trace.start.p_beyond})
    assigned = assigned_share(tau, labels)
    if steps := _where(assigned < ENOUGH_ASSIGNED):
        share = {"share": float(assigned.min())}
        yield Finding("unassigned", steps, share, "warning" if assigned[-1] < MAJORITY else "note")
    yield from _rare_move(result, nu)


def findings_of_partition(
    result: Result, tau: TrajectoryDataset, nu: float, evidence: float, embedding_r2: float | None
) -> Iterator[Finding]:
    """Of states that are the partition of an embedding.

    Too few trajectories; log-odds at chance, or else: states without evidence, an embedding that holds too little of
    the log-odds, states that tell less than they, moves that are hardly seen.

    evidence      nats that speak for the states
    embedding_r2  of the log-odds, the share that the embedding explains; None where it is not trained
    """
    yield from _few_trajectories(tau)
    guesses = list(_at_chance(result, tau, None))
    yield from guesses
    if any(finding.kind == "at chance" for finding in guesses):
        return
    if result.labels.max() < 1 or evidence < MIN_EVIDENCE:
        yield Finding("no evidence", (), {"nats": max(evidence, 0.0)})
        return
    if embedding_r2 is not None and embedding_r2 < MIN_EMBEDDING_R2:
        yield Finding("embedding holds little", (), {"share": max(embedding_r2, 0.0)})
    yield from _states_tell_less(result, tau)
    yield from _rare_move(result, nu)


def findings_of_checks(
    tau: TrajectoryDataset,
    n_states: NDArray[np.int64],
    stability: Stability | None = None,
    tests: StateTests | None = None,
    sufficient: Sufficiency | None = None,
    mixtures: Sequence[Mixture] = (),
) -> Iterator[Finding]:
    """What refits, the functions of a class, the log-odds of a network and states that look like two say against the
    states."""
    if tests is not None:
        yield from _contradicted(tests)
    yield from _few_trajectories(tau)
    if stability is not None:
        same = stability.same_count(n_states)
        if (share := float(same[1:].mean())) < MAJORITY:
            yield Finding("counts differ", _where(same < MAJORITY), {"share": share})
        if steps := _where(stability.agreement.mean(axis=0) < MIN_STABILITY):
            yield Finding("unstable", steps, {"least": MIN_STABILITY})
    for mixture in mixtures:
        yield Finding("looks like two", () if mixture.h is None else (mixture.h,), {"s": mixture.state})
    if sufficient is not None:
        share, error, n = sufficient.share, sufficient.error, sufficient.n_unseen
        if sufficient.insufficient:
            yield Finding("not sufficient", (), {"share": max(share, 0.0), "error": 2 * error, "n": n})
        if n < FEW_UNSEEN or sufficient.p_gain > LEVEL or not share - 2 * error >= MIN_SURE_SHARE:
            yield Finding("hardly known", (), {"error": min(2 * float(np.nan_to_num(error, nan=0.5)), 1.0), "n": n})
        for one, other in sufficient.alike:
            (steps, s), (_, t) = sufficient.named(one), sufficient.named(other)
            yield Finding("look like one", steps, {"s": s, "t": t})
        if sufficient.misread[0] >= 0:
            steps, s = sufficient.named(sufficient.misread[0])
            yield Finding("misread state", steps, {"s": s, "share": sufficient.misread[1]})
        elif sufficient.read < MIN_READ:
            yield Finding("misread observations", (), {"share": sufficient.read})


def assigned_share(tau: TrajectoryDataset, labels: Labels) -> Floats:
    """(H,): of the trajectories that are there at h, the share that has a state; those that are over miss none."""
    there = np.array([int(tau.running(h).sum()) for h in range(1, tau.H + 1)])
    return np.asarray((labels >= 0).sum(axis=0) / np.maximum(there, 1))


# -- the single findings --------------------------------------------------------------------------------------------


def _at_chance(result: Result, tau: TrajectoryDataset, tests: StateTests | None) -> Iterator[Finding]:
    """Steps whose log-odds are no better than chance by their own test: if they are most, and no better together.

    Where all steps teach one encoder, one step that is better than chance, of all that were tested, says that there is
    something to tell.

    For finite classes they are taken together by Fisher's sum of ln p over steps, a gamma variable if nothing is there
    to tell, corrected for the number of chains of encoders that the states are the best of, or of single encoders where
    one serves all steps. Where other chains are ruled out, by how codes move, there was no such choice to correct for.
    """
    steps = result.trace.at_chance()
    if not steps:
        return
    enough = 1 if tests is None and _one_encoder(result) else (1 - MAJORITY) * len(result.trace)
    nothing = len(result.trace) - len(steps) < enough
    if nothing and tests is not None:
        total = -sum(tests.log_p[h - 1] for h in steps)
        log_p = float(log_gamma_tail(np.array(float(len(steps))), np.array(total)))
        chosen = [1] if _one_encoder(result) else [*({h + after for h in steps for after in (0, 1)} - {1})]
        choices = 0.0 if tests.doubted < UNSURE else float(np.log(tests.n_encoders[np.array(chosen) - 1]).sum())
        nothing = log_p + choices > np.log(LEVEL)
    if nothing:
        yield Finding("at chance", tuple(steps))
    if nothing or not tau.aligned:  # no step of windows is like another
        return
    tables = {h: _table(result.labels, tau, h) for h in steps}
    log_p_of = {h: float(dependence(t[:, None], np.zeros(len(t), dtype=np.int64))[0][0]) for h, t in tables.items()}
    differ = tuple(h for h in steps if log_p_of[h] < np.log(CONTRADICTED))
    if alike := tuple(h for h in steps if h not in differ):
        yield Finding("alike at some steps", alike, severity="note")
    if differ and tests is None:
        p = float(np.exp(max(log_p_of[h] for h in differ)))
        yield Finding("test too small", differ, {"p": p}, severity="note")


def _states_tell_less(result: Result, tau: TrajectoryDataset) -> Iterator[Finding]:
    """Where pairs of states tell less of the agents than learned log-odds do on pairs that they did not learn from.

    What tables of states tell is the likelihood less the number of their parameters (Akaike), by step or pooled.
    """
    pairs = [int(tau.running(step.h + 1).sum()) for step in result.trace]
    steps = zip(pairs, result.trace)
    by_odds = sum(n * (step.chance - step.f_loss) for n, step in steps if step.chance is not None)

    def gain(table: Ints) -> float:
        table = table[table.sum(axis=1) > 0]
        rows, columns = table.sum(axis=1, keepdims=True), table.sum(axis=0)
        of_all = xlogy(columns, columns / max(columns.sum(), 1)).sum()
        return float(xlogy(table, table).sum() - xlogy(rows, rows).sum() - of_all) - (tau.K - 1) * (len(table) - 1)

    by_states, pooled = 0.0, np.zeros(1, dtype=np.int64)
    for h in range(1, tau.H):
        table = _table(result.labels, tau, h)
        by_states, pooled = by_states + gain(table), pooled + table
    if _one_encoder(result):
        by_states = max(by_states, gain(pooled))
    if by_odds - by_states > MIN_LOST and by_states < MIN_CAPTURED * by_odds:
        yield Finding("states tell less", (), {"share": max(by_states, 0.0) / by_odds})


def _table(labels: Labels, tau: TrajectoryDataset, h: int) -> NDArray[np.int64]:
    """How often each agent visits each pair of states of h and h+1, (pairs, K)."""
    S = n_labels(labels)
    return crossed(labels[:, h - 1], labels[:, h], tau.agent, sizes=(S, S, tau.K)).reshape(-1, tau.K)


def _contradicted(tests: StateTests) -> Iterator[Finding]:
    """Where observations tell more of moves or agents than the states do, all steps taken together; split states."""
    for kind, p in (("not closed", tests.p_closure), ("agents told by more", tests.p_residual)):
        if steps := _where(p * len(p) < CONTRADICTED):
            yield Finding(kind, steps, {"p": float(p.min())})
    if steps := _where(tests.split < np.log(CONTRADICTED)):
        yield Finding("split", steps, {"nats": -float(tests.split.min())})


def _few_trajectories(tau: TrajectoryDataset) -> Iterator[Finding]:
    if (fewest := int(tau.counts.min())) < MIN_TRAJECTORIES:
        yield Finding("few trajectories", (), {"fewest": fewest, "least": MIN_TRAJECTORIES})


def _rare_move(result: Result, nu: float) -> Iterator[Finding]:
    """The rarest move that Line 19 sees, if hardly anybody makes it; rarer ones may be misread observations.

    Where one encoder serves all steps, moves of all of them are the same, and are counted together.
    """
    rarest = (FEW_VISITS, 0, 0, 0, 0)
    together, (before, after) = _one_encoder(result), (result.labels[:, :-1].T, result.labels[:, 1:].T)
    by_step = [(before.ravel(), after.ravel())] if together else zip(before, after)
    for h, (s_h, s_next) in enumerate(by_step, start=1):
        count = crossed(s_h, s_next)
        total = int(count.sum())
        if total:
            seen = np.where(count >= max(1.0, nu / HEAVY * total), count, FEW_VISITS)
            s, t = divmod(int(seen.argmin()), seen.shape[1])
            rarest = min(rarest, (int(seen[s, t]), h, s, t, total))
    visits, h, s, t, total = rarest
    if h:
        numbers = {"count": visits, "total": total, "s": s, "t": t}
        yield Finding("rare move", () if together else (h,), numbers, "note")


def _one_encoder(result: Result) -> bool:
    return result.encoders[0] is result.encoders[-1]


def _where(bad: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(h) for h in np.flatnonzero(bad) + 1)
