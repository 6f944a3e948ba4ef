"""The findings about pairs of agents as a table, and what to do about them."""

from __future__ import annotations

from collections.abc import Iterable

from craftrl.diagnostics.agent_pairs.findings import FEW, AgentPair, AgentPairs

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
    who = [_both(pair) for pair in found.pairs]
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
    return (
        *_first(by["compare"], by["data short"]),
        *_short(by["data short"]),
        *_alike(by["alike"]),
        *_other_places(by["other places"]),
        *_too_little(by["too little"]),
        *_changed(found),
        *_left_out(found),
    )


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
    few = [pair for pair in pairs if min(pair.n) < FEW]
    if few:
        who = {name: n for pair in few for name, n in zip(pair.names, pair.n) if n < FEW}
        yield (
            f"Record more of {_list(f'{name} ({n} trajectories)' for name, n in who.items())}: {_pairs(few)} differ, "
            f"but with fewer than {FEW} trajectories of an agent nothing was learned reliably."
        )
    for pair in pairs:
        if pair not in few:
            yield (
                f"{_both(pair)} differ, but this is seen at {pair.differing.sum()} of {len(pair.differing)} steps "
                "only: record more of both, unless they act alike at the other steps."
            )


def _alike(pairs: list[AgentPair]) -> Iterable[str]:
    if pairs:
        visible = max(pair.visible for pair in pairs)
        yield (
            f"{_pairs(pairs)} act alike: a difference of about {visible:.0%} would have been seen. Join them into one "
            "agent, or leave one out."
        )


def _other_places(pairs: list[AgentPair]) -> Iterable[str]:
    if pairs:
        shared = max(pair.shared for pair in pairs)
        yield (
            f"{_pairs(pairs)} are told apart by single frames (they share {shared:.0%} of their places or less): they "
            "go to different places, or were recorded differently. Let them visit the same places, or compare each "
            "with an agent that goes to both."
        )


def _too_little(pairs: list[AgentPair]) -> Iterable[str]:
    """One sentence for each agent of whom there is least."""
    by_least: dict[str, list[AgentPair]] = {}
    for pair in pairs:
        by_least.setdefault(pair.names[int(pair.n[1] < pair.n[0])], []).append(pair)
    for name, mine in by_least.items():
        visible = max(pair.visible for pair in mine)
        what = f"a difference below about {visible:.0%} would not" if visible < 1 else "no difference would"
        equal = all(pair.n[0] == pair.n[1] for pair in mine)
        whom = _list(dict.fromkeys(other for pair in mine for other in pair.names)) if equal else name
        yield f"Record more of {whom}: with {min(mine[0].n)} trajectories {what} be seen ({_pairs(mine)})."


def _changed(found: AgentPairs) -> Iterable[str]:
    for drift in found.drifts:
        if drift.changed:
            yield (
                f"{drift.name} changed over its recordings: its first half is told from its second (moves differ by "
                f"{drift.points:.0%}, p {_p(drift.p_value)}). If they are in the order of time, give the two halves as "
                "two agents."
            )


def _left_out(found: AgentPairs) -> Iterable[str]:
    compared = {name for pair in found.pairs for name in pair.names}
    left = [name for name in found.names if name not in compared]
    if left:
        yield f"Not compared in pairs, because they stand out least from all others: {_list(left)}."


def _both(pair: AgentPair) -> str:
    return " and ".join(pair.names)


def _pairs(pairs: Iterable[AgentPair]) -> str:
    return "; ".join(map(_both, pairs))


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
