"""The findings about pairs of agents as a table, and what to do about them."""

from __future__ import annotations

from collections.abc import Iterable

from craftrl.diagnostics.agent_pairs.findings import COARSE, FEW, AgentPair, AgentPairs

__all__ = ["advice", "table"]

MEANING = {
    "compare": "worth comparing",
    "data short": "worth it; data is short",
    "other places": "worth little: told apart by single frames",
    "alike": "not worth it: nothing tells them apart",
    "too little": "too little data to say",
}


def table(found: AgentPairs) -> list[str]:
    """One line per pair, those most worth it first."""
    who = [" and ".join(pair.names) for pair in found.pairs]
    width = max(len("agents"), *map(len, who))
    head = f"  {'agents':{width}}  trajectories  moves differ  at steps  places shared       p  verdict"
    return [
        f"how different the agents are, before anything is learned ({_how(found)}):",
        head,
        *(f"  {names:{width}}  {_numbers(pair)}  {MEANING[pair.verdict]}" for names, pair in zip(who, found.pairs)),
    ]


def _how(found: AgentPairs) -> str:
    by = "entries of small integers counted in pairs" if found.counted else "boosted trees on shrunk observations"
    return f"{by}, {len(found.steps)} pairs of steps, tested on held-out trajectories"


def _numbers(pair: AgentPair) -> str:
    n = f"{pair.n[0]:,} + {pair.n[1]:,}"
    if pair.contrast is None:
        return f"{n:>12}  {'-':>12}  {'-':>8}  {'-':>13}  {'-':>6}"
    steps = f"{pair.differing.sum()} of {len(pair.differing)}"
    return f"{n:>12}  {pair.points:>12.0%}  {steps:>8}  {pair.shared:>13.0%}  {_p(pair.p_value):>6}"


def _p(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def advice(found: AgentPairs) -> tuple[str, ...]:
    """Sentences, the most useful first."""
    by: dict[str, list[AgentPair]] = {verdict: [] for verdict in MEANING}
    for pair in found.pairs:
        by[pair.verdict].append(pair)
    said = [
        *_first(by["compare"], by["data short"]),
        *_short(by["data short"]),
        *(_alike(pair) for pair in by["alike"]),
        *(_other_places(pair) for pair in by["other places"]),
        *_too_little(by["too little"], found),
        *_changed(found),
    ]
    left_out = set(found.names) - {name for pair in found.pairs for name in pair.names}
    if left_out:
        said.append(f"Not compared in pairs, because they stand out least from all others: {_list(sorted(left_out))}.")
    return tuple(said)


def _first(good: list[AgentPair], short: list[AgentPair]) -> Iterable[str]:
    if not good and not short:
        yield "No pair of these agents is worth comparing yet."
        return
    pair = (good or short)[0]
    yield (
        f"Compare {pair.names[0]} with {pair.names[1]} first: their moves differ as much as chances that are "
        f"{pair.points:.0%} apart, which is seen at {pair.differing.sum()} of {len(pair.differing)} steps, and they "
        f"share {pair.shared:.0%} of their places."
    )
    if len(good) > 1:
        yield f"Also worth comparing, best first: {_list(' with '.join(other.names) for other in good[1:])}."


def _short(pairs: list[AgentPair]) -> Iterable[str]:
    for pair in pairs:
        fewer = pair.names[pair.n[1] < pair.n[0]]
        who = "both" if pair.n[0] == pair.n[1] else fewer
        seen = f"the difference is seen at {pair.differing.sum()} of {len(pair.differing)} steps"
        why = f"{min(pair.n)} trajectories are few (below {FEW} nothing was learned reliably)"
        yield (
            f"{pair.names[0]} and {pair.names[1]} differ, but {why if min(pair.n) < FEW else seen}: record more of "
            f"{who}{'' if min(pair.n) < FEW else ', unless they act alike at the other steps'}."
        )


def _alike(pair: AgentPair) -> str:
    return (
        f"{pair.names[0]} and {pair.names[1]} act alike: a difference of about {pair.visible:.0%} would have been seen. "
        "Join them into one agent, or leave one out."
    )


def _other_places(pair: AgentPair) -> str:
    return (
        f"{pair.names[0]} and {pair.names[1]} are told apart by single frames (they share {pair.shared:.0%} of their "
        "places): they go to different places or were recorded differently. Let them visit the same places, or compare "
        "each with an agent that goes to both."
    )


def _too_little(pairs: list[AgentPair], found: AgentPairs) -> Iterable[str]:
    for pair in pairs:
        fewer = min(pair.n)
        names = " and ".join(name for name, n in zip(pair.names, pair.n) if n <= 2 * fewer)
        seen = f"with {pair.n[0]:,} and {pair.n[1]:,} trajectories"
        what = f"a difference below about {pair.visible:.0%} would not be seen" if pair.visible < 1 else "nothing is seen"
        yield f"Record more of {names}: {seen}, {what} between {pair.names[0]} and {pair.names[1]}."


def _changed(found: AgentPairs) -> Iterable[str]:
    for drift in found.drifts:
        if drift.changed:
            yield (
                f"{drift.name} changed over its recordings: its first half of trajectories is told from its second "
                f"(moves differ by {drift.points:.0%}, p {_p(drift.p_value)}). If they are in the order of time, give "
                "the two halves as two agents."
            )


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
