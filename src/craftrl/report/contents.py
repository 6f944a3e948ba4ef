"""Everything that a report says, as numbers, sentences and pictures: no HTML, and nothing is computed after this."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from craftrl._version import __version__
from craftrl.arrays import Floats, Ints
from craftrl.core.encoders import ValueEncoder
from craftrl.core.labels import Labels, n_labels, paired, tally
from craftrl.core.trace import StepTrace
from craftrl.data.inputs import as_dataset
from craftrl.diagnostics import Diagnosis
from craftrl.errors import InvalidParameterError
from craftrl.estimators.choices import describe
from craftrl.estimators.craft import CRAFT
from craftrl.estimators.verdict import verdict
from craftrl.evaluation import count_visits
from craftrl.oracles.finite import CoordinateOracle, FiniteOracle
from craftrl.paper import empirical_assumptions, sample_size
from craftrl.planning import StateGraph
from craftrl.report.figures import flow, is_image, spectrum
from craftrl.report.states import Sample, State, entries, portraits, states_of
from craftrl.report.tables import MAX_ROWS, Table, power_of_ten

ERRORS, FAILURE = 0.05, 0.05  # the share of each state's observations that may be wrong, and how likely more may be
MAX_BARS = 20_000  # of spectra; beyond, each step keeps its most frequent states
MAX_BLOCKS = 200  # states whose moves are compared between agents
MAX_MERGES = 8  # of states, whose costs are named


def contents(
    model: CRAFT, x: Any = None, agent: Any = None, *, title: str = "CRAFT model", n_resamples: int | None = None
) -> dict[str, Any]:
    """All that a model says, and all that its data says of it, as the template names it; see `write_report`."""
    model.check_fitted()
    shared, names = hasattr(model, "encoder_"), tuple(_named(name) for name in model.agents_)
    pairs, kept = [f"{names[0]} against {other}" for other in names[1:]], _kept(model)
    diagnosis, sample, who = None, None, ("all agents",)
    codes, whose = model.labels_fitted(), np.zeros(model.sizes_fitted()[0], dtype=np.int64)
    found: list[State] = []
    pictured: list[State] = []
    of_entries: dict[int | None, tuple[str, Table]] = {}
    tables: list[Table] = []
    if x is not None:
        tau = model.steps_fitted(as_dataset(x, agent)).tau
        diagnosis = model.diagnose(x, agent, n_resamples=n_resamples)
        sample = Sample.of(model, tau)
        codes, whose, who = sample.codes, sample.tau.agent, names  # type: ignore[assignment]
        found = states_of(sample, shared)
        if is_image(model.obs_shape_):
            pictured = portraits(model, sample, found, diagnosis.mixtures, names)
        else:
            table, of_entries = entries(model, sample, found)
            tables.append(table)
    by_step = StateGraph.from_states(codes, whose, min_share=0)
    graph = StateGraph.from_states(codes, whose, shared=shared, min_share=0)
    tables = [_steps(model, diagnosis), _assumptions(model, sample), _transitions(by_step, who), *tables]
    tables += [_visits(codes, whose, who), _spectra(model, kept, pairs), _clusters(model, kept, pairs, names)]
    tables.append(_comparisons(model))
    drawn = {"all agents": whose >= 0, **{name: whose == k for k, name in enumerate(who) if len(who) > 1}}
    return {
        "title": title,
        "made_by": f"craftrl {__version__}",
        "verdict": verdict(model, diagnosis),
        "theorem": _theorem(model),
        "agents": names,
        "states": {h: [state for state in pictured if state.h == h] for h in dict.fromkeys(s.h for s in pictured)},
        "decides": any(picture.label == "decides" for state in pictured for picture in state.pictures),
        "entries": of_entries,
        "over_time": {name: _over_time(codes[mine], n_labels(codes), shared) for name, mine in drawn.items()},
        "agents_differ": _differences(graph, who) if sample is not None else [],
        "spectra": {step.h: _drawn_spectra(model, step, kept[step.h], pairs) for step in model.trace_},
        "scan": any(step.threshold > 0 for step in model.trace_),  # the paper's, for which there is a heavy line
        "tables": {table.name: table for table in tables},
        "columns": COLUMNS,
        "choices": describe(model.choices_),
        "facts": dict(_facts(model, names)),
        "notes": list(_notes(model, sample, len(found) - len(pictured) if pictured else 0, kept, tables)),
    }


def _named(name: Any) -> str:
    """An agent by its name, or "agent 0" where it has but a number."""
    return name if isinstance(name, str) else f"agent {name}"


def _notes(
    model: CRAFT, sample: Sample | None, without: int, kept: dict[int, list[int]], tables: list[Table]
) -> Iterator[str]:
    """What was left out or could not be said, and why."""
    if sample is None:
        yield (
            "This report was made without the data. With it (craftrl report MODEL DATA) it also shows what each state "
            "looks like, how each agent moves, and a diagnosis."
        )
    elif sample.tau.n < model.sizes_fitted()[0]:
        n = sample.tau.n
        yield f"What is said of states and moves comes from {n:,} trajectories, taken from all over the data."
    if without:
        yield f"{without:,} rarer states have no pictures, so that the file stays small."
    if rarer := sum(len(step.spectra) - len(kept[step.h]) for step in model.trace_):
        yield f"The spectra of {rarer:,} rarer states were left out, so that the file stays small."
    for table in tables:
        if table.left_out:
            n = len(table.rows) + table.left_out
            yield f"Of the {n:,} rows of the table of {table.name}, {len(table.rows):,} are in this file."


# -- moves and visits ---------------------------------------------------------------------------------------------


def _visits(codes: Labels, agent: Labels, who: tuple[str, ...]) -> Table:
    """One row for each step and state."""
    rows: list[tuple[Any, ...]] = []
    for h, states in enumerate(codes.T, start=1):
        counts = count_visits(states, agent, sizes=(n_labels(states), len(who)))
        rows += [(h, s, *own) for s, own in enumerate(counts.tolist()) if any(own)]
    columns = ("h", "state", *(f"visits of {name}" for name in who))
    return Table("visits", "How many trajectories are in each state.", columns, tuple(rows))


def _made(graph: StateGraph) -> tuple[Ints, Floats]:
    """How often each agent makes each move, (E, K), and in what share of its moves out of the state; NaN for none."""
    s, t = graph.edges.T
    made = np.stack([np.asarray(table[s, t]).reshape(-1) for table in graph.counts], axis=1)
    left = np.zeros((graph.n, made.shape[1]))
    np.add.at(left, s, made)
    return made, np.divide(made, left[s], out=np.full(made.shape, np.nan), where=left[s] > 0)


def _transitions(graph: StateGraph, who: tuple[str, ...]) -> Table:
    """One row for each move that was seen, and where there is no room for all, those that are made often."""
    made, share = _made(graph)
    often = np.sort(np.argsort(-made.sum(axis=1), kind="stable")[:MAX_ROWS])
    rows = [
        (*graph.name(s), graph.name(t)[1], *own, *part)
        for (s, t), own, part in zip(graph.edges[often].tolist(), made[often].tolist(), share[often].tolist())
    ]
    columns = ("h", "state", "next state", *(f"{what} {name}" for what in ("moves of", "share of") for name in who))
    caption = "Moves from state to state: how often they were made, and in what share of the visits to the state."
    return Table("transitions", caption, columns, tuple(rows), len(made) - len(often))


def _differences(graph: StateGraph, who: tuple[str, ...]) -> list[dict[str, Any]]:
    """How each agent goes on from each state; first where the most moves would have to change to make agents alike."""
    made, share = _made(graph)
    blocks: list[dict[str, Any]] = []
    for s in np.unique(graph.edges[:, 0]).tolist():
        own = graph.edges[:, 0] == s
        h, state = graph.name(s)
        where = f"state {state}" if h is None else f"state {state} at step {h}"
        apart = np.abs(share[own][:, :, None] - share[own][:, None]).sum(axis=0) / 2  # total variation of two agents
        apart = np.where(np.triu(np.isfinite(apart), k=1), apart, -1.0)  # -1: one of them was never there
        a, b = np.unravel_index(apart.argmax(), apart.shape)
        sentence = f"In {where} only one agent was seen, so that there is nothing to compare."
        if apart[a, b] >= 0:
            most = "differ most" if len(who) > 2 else "differ"
            sentence = (
                f"In {where}, {who[a]} and {who[b]} {most}: {apart[a, b]:.0%} of the moves of one would have to change "
                "to match the other's."
            )
        moves = zip(graph.edges[own, 1].tolist(), made[own].tolist(), share[own].tolist())
        after = [(graph.name(t)[1], list(zip(who, counts, parts))) for t, counts, parts in moves]
        weight = float(apart[a, b]) * int(made[own].sum())
        blocks.append({"where": where, "said": sentence, "moves": after, "weight": weight})
    return sorted(blocks, key=lambda block: -block["weight"])[:MAX_BLOCKS]


def _over_time(codes: Labels, S: int, shared: bool) -> dict[str, Any]:
    """What to draw of the states of trajectories, (n, H)."""
    moves = [tally(paired(s, t, S), S * S).reshape(S, S) for s, t in pairwise(codes.T)]
    return flow(np.stack([tally(states, S) for states in codes.T]), moves, shared)


# -- what fit did -------------------------------------------------------------------------------------------------

COLUMNS = {  # of the table of steps
    "states": "how many were found",
    "reads entry": "the entry of the observation that the encoder reads, or the number of its function",
    "assigned": "share of the trajectories that have a state",
    "loss": "of the log-odds that lead to the step, in nats; less than chance is better",
    "chance": "the loss of knowing only how often each agent occurs",
    "p-value": "how likely so small a loss is by chance",
    "encoder loss": "how much of the states found the encoder does not read",
    "same count": "share of the refits that find as many states",
    "stable": "how far the refits' states agree with the model's",
    "explained": "of what observations tell of the agents, the share that the states hold",
    "trust": "stable times explained, the least so far; for networks times what their states hold of what was asked",
}


def _steps(model: CRAFT, found: Diagnosis | None) -> Table:
    """One row for each step, with the checks where there were any."""
    H = len(model.encoders_)
    checks: list[Any] = [np.full(H, np.nan)] * 4
    if found is not None:
        checks = [found.same_count, found.stable, found.explained, found.trust if found.checked else checks[0]]
    at_chance = {h + 1 for h in model.trace_.at_chance()}
    rows = []
    for h, *checked in zip(range(1, H + 1), *checks):
        learned: tuple[Any, ...] = (1.0, None, None, None, None)
        outcome = "ok"
        if h > 1:
            step = model.trace_[h - 1]
            learned = (step.assigned, step.f_loss, step.chance, step.p_value, step.encoder_loss)
            outcome = step.outcome + ", log-odds at chance" * (h in at_chance)
        encoder = model.encoders_[h]
        reads = int(encoder.index) if isinstance(encoder, ValueEncoder) else None
        rows.append((h, int(model.n_states_[h]), reads, *learned, *checked, outcome))
    names = ("h", *COLUMNS, "outcome")
    return Table("steps", "What was found at each step, and what the checks say of it.", names, tuple(rows))


def _assumptions(model: CRAFT, sample: Sample | None) -> Table:
    """The bounds that were counted on, beside those that the learned states attain."""
    seen = None
    if sample is not None:
        lengths = (sample.codes >= 0).sum(axis=1)
        seen = empirical_assumptions(sample.tau.agent, sample.codes, n_agents=sample.tau.K, lengths=lengths)
    meaning = {
        "alpha": "how different the agents are: least gap between two successors of a state, in log-odds",
        "eta": "how rare an agent may be: its least share in the visits to a pair of states",
        "nu": "how rare a move may be: least share of trajectories that make it",
    }
    rows = []
    for name, text in meaning.items():
        found = None if seen is None else getattr(seen, name)
        where = None if found is None else str(found).partition(" at ")[2]
        rows.append(
            (name, text, float(getattr(model.bounds_, name)), None if found is None else float(found.value), where)
        )
    columns = ("bound", "meaning", "counted on", "found in the learned states", "where")
    return Table("assumptions", "The bounds of the paper's assumptions.", columns, tuple(rows))


def _theorem(model: CRAFT) -> str:
    """How many trajectories Theorem 3.1 asks for at the model's bounds, for 95% of each state right with probability
    95%, beside how many were given; nothing where the class is not finite."""
    oracle, (n, H) = model.oracle_, model.sizes_fitted()
    if isinstance(oracle, CoordinateOracle):
        functions = int(np.prod(model.obs_shape_))
    elif isinstance(oracle, FiniteOracle):
        functions = max(len(oracle.Phi(h)) for h in range(1, H + 1))
    else:
        return ""
    visits = [np.bincount(own[own >= 0]) for own in model.labels_fitted().T]
    rarest = min((float(v[v > 0].min()) for v in visits if v.any()), default=1.0) / n
    try:
        asked = sample_size(
            epsilon_0=ERRORS,
            delta=FAILURE,
            H=H,
            class_size=functions * math.factorial(oracle.n_values),
            N_s=max(2, *model.n_states_),
            nu_prime=max(model.bounds_.nu, rarest),
            **vars(model.bounds_),
        ).total
    except InvalidParameterError as error:
        return f"The paper's theorem names no sample size here: {str(error).rstrip('.')}."
    return (
        f"The paper's theorem asks for {power_of_ten(asked)} trajectories to promise {1 - ERRORS:.0%} of every "
        f"state right with probability {1 - FAILURE:.0%}; {n:,} were given. That is a worst case over all "
        "worlds: in practice thousands often do, and the checks say whether they did."
    )


def _facts(model: CRAFT, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    yield "Oracle (what learned)", repr(model.oracle_)
    yield "Encoders", "one for all steps" if hasattr(model, "encoder_") else "one for each step"
    if merges := getattr(model, "merges_", ()):
        costs = [f"{int(state_of.max()) + 1} for {nats:.0f} nats" for state_of, nats in merges[:MAX_MERGES]]
        yield "What fewer states would cost", ", ".join(costs)
    counts = ", ".join(f"{name}: {n:,}" for name, n in zip(names, model.data_["trajectories"]))
    yield "Trajectories of each agent", counts
    shape = " × ".join(map(str, model.data_["observation"]))
    yield "Observations", f"{model.data_['steps']} steps, each {shape} of type {model.data_['dtype']}"
    yield "Fingerprint of the data", model.data_["fingerprint"]
    for name, value in vars(model.bounds_).items():
        yield f"Bound {name}", f"{value:.4g}"
    for use in model.trace_.oracle_use:
        yield f"Questions of {use.question}", f"{use.asked:,}, {use.seconds:.2g} s"


# -- spectra of the log-odds --------------------------------------------------------------------------------------


def _kept(model: CRAFT) -> dict[int, list[int]]:
    """For each h, the states whose spectra a report holds: all of them, or the most frequent."""
    trace = model.trace_
    most = max(1, MAX_BARS // (trace.grid.size * (len(model.agents_) - 1) * max(1, len(trace))))

    def commonest(step: StepTrace) -> list[int]:
        visits = step.spectra.sum(axis=tuple(range(1, step.spectra.ndim)))  # there may be no state at all
        return sorted(np.argsort(-visits, kind="stable")[:most].tolist())

    return {step.h: commonest(step) for step in trace}


def _drawn_spectra(model: CRAFT, step: StepTrace, kept: list[int], pairs: list[str]) -> list[tuple[str, str, Any]]:
    """For each state that a pair begins in, and each pair of agents, what to draw."""
    return [
        (str(s), pair, spectrum(model.trace_, step, s, j))
        for s in kept
        for j, pair in enumerate(pairs)
        if step.spectra[s].any()
    ]


def _spectra(model: CRAFT, kept: dict[int, list[int]], pairs: list[str]) -> Table:
    values = model.trace_.grid.values.round(6)
    rows = tuple(
        (step.h, str(s), pair, float(values[j]), int(margin[j]))
        for step in model.trace_
        for s in kept[step.h]
        for pair, margin in zip(pairs, np.atleast_2d(step.spectra[s]))
        for j in np.flatnonzero(margin)
    )
    caption = "How many pairs of observations have each log-odds, for each step and state that they begin in."
    return Table("spectra", caption, ("h", "state", "agents", "log-odds", "pairs"), rows)


def _clusters(model: CRAFT, kept: dict[int, list[int]], pairs: list[str], names: tuple[str, ...]) -> Table:
    """One row for each cluster and pair of agents: which log-odds it covers, what became of it, who makes the move."""
    values, rows = model.trace_.grid.values.round(6), []
    for step in model.trace_:
        for number, cluster in enumerate(step.clusters):
            if cluster.s_pred not in kept[step.h]:
                continue
            margins = np.atleast_2d(step.spectra[cluster.s_pred])
            for k, (pair, (first, last), margin) in enumerate(zip(pairs, cluster.bins, margins), start=1):
                weights = margin[first : last + 1]
                mean = float(np.average(values[first : last + 1], weights=weights)) if weights.any() else None
                made = None
                if mean is not None:
                    made = f"{math.exp(abs(mean)):.1f} times as often by {names[0] if mean >= 0 else names[k]}"
                ends = (float(values[first]), float(values[last]))
                state, successor = str(cluster.s_pred), str(cluster.state)
                rows.append((step.h, state, successor, pair, made, *ends, mean, int(cluster.size), number))
    caption = "Clusters of log-odds: successors of one state that the agents reach with like odds."
    columns = ("h", "state", "next state", "agents", "made", "from", "to", "mean log-odds", "pairs", "cluster")
    return Table("clusters", caption, columns, tuple(rows))


def _comparisons(model: CRAFT) -> Table:
    """One row for each answer of the separation oracle."""
    rows = tuple(
        (step.h, c.cluster, str(c.state), float(c.loss), "one state" if c.merged else "apart")
        for step in model.trace_
        for c in step.comparisons
    )
    caption = "Is a cluster a state that was found before? The loss of telling them apart: 1 is chance, 0 is certain."
    return Table("merging", caption, ("h", "cluster", "next state", "loss", "answer"), rows)
