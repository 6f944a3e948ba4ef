"""Tables of the study in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from craftrl.paper.sweep import Estimate, estimate
from studies.efficiency.report import Curve
from studies.efficiency.spec import EXCESS, OTHERS, WORLDS
from studies.statistics import half_of, percent

__all__ = [
    "BEFORE_CLUSTERING",
    "CODES",
    "EXCESS_ROWS",
    "LEARNED",
    "fresh_rows",
    "page_tables",
    "state_rows",
    "table_rows",
]

LEARNED = {
    "independent": '`coupling="independent"`: the paper\'s',
    "independent, relabelled": "the same, `relabel=True`",
    "chain": '`coupling="chain"`',
    "chain, relabelled": "the same, `relabel=True`",
    "markov": '`coupling="markov"`',
    "markov, relabelled": "the same, `relabel=True`",
    "genie": "genie",
    "hub": "hub",
}
CODES = {"chain, raw": "chain", "markov, raw": "Markov chain", "genie": "genie"}
BEFORE_CLUSTERING = {
    "chain, raw": "chain",
    "conditional, raw": "conditional chain",
    "markov, raw": "Markov chain",
}
YARDSTICKS = ("genie", "hub")
STATE_WORLDS = (*WORLDS, *OTHERS, *EXCESS)
EXCESS_ROWS = {
    "chain, raw": "the chain's codes",
    "markov, raw": "the Markov chain's codes",
    "independent": "CRAFT, independent",
    "chain": "CRAFT on the chain",
    "markov": "CRAFT on the Markov chain",
}


def page_tables(found: Sequence[Curve], chance: Mapping[str, float]) -> list[str]:
    """Every line of every table of results on the page, in its order."""
    lines = []
    for world in ("paper", "control", "sticky"):
        shown = {k: v for k, v in LEARNED.items() if (k, world) != ("hub", "paper")}
        lines += table_rows(found, world, shown, chance)
        lines.append(_gain(found, world, "markov, relabelled", "chain, relabelled"))
    lines += fresh_rows(found, chance)
    for world in ("lock", "three agents", "guided by noise"):
        lines += table_rows(found, world, {k: v for k, v in LEARNED.items() if k not in YARDSTICKS}, chance)
    for world in ("paper", "control"):
        lines += table_rows(found, world, BEFORE_CLUSTERING, chance)
    for world in ("excess at h = 2", "excess at every h"):
        lines += table_rows(found, world, EXCESS_ROWS, chance)
    return lines + state_rows(found)


def fresh_rows(found: Sequence[Curve], chance: Mapping[str, float]) -> list[str]:
    """The codes of every world that was run on fresh seeds: on the seeds of all tables, then on those."""
    by_name = {(curve.world, curve.method): curve for curve in found}
    lines = []
    for world in ("paper", "control", "sticky"):
        for method, title in CODES.items():
            old, new = by_name[world, method], by_name[f"{world}, fresh seeds", method]
            cells = [_cell(old.accuracy[old.sizes.index(size)]) for size in new.sizes]
            lines.append(_line(f"{world}: {title}", [*cells, *map(_cell, new.accuracy)]))
        both = (f"{100 * chance[name]:.1f}" for name in (world, f"{world}, fresh seeds") for _ in new.sizes)
        lines.append(_line(f"{world}: chance", both))
    return lines


def table_rows(
    found: Sequence[Curve], world: str, methods: Mapping[str, str], chance: Mapping[str, float]
) -> list[str]:
    """One line per method and one of chance: means in percent with half of the 95% interval, where that shows."""
    curves = {curve.method: curve for curve in found if curve.world == world}
    lines = [_line(title, map(_cell, curves[method].accuracy)) for method, title in methods.items()]
    sizes = next(iter(curves.values())).sizes
    return [*lines, _line("chance", (f"{100 * chance[world]:.1f}" for _ in sizes))]


def state_rows(found: Sequence[Curve]) -> list[str]:
    """One line per world and size: accuracy of single states, its mean and the worst of a run; none for older rows."""
    lines = []
    for world in STATE_WORLDS:
        curves = {curve.method: curve for curve in found if curve.world == world and curve.state_mean}
        shown = [curves.get(f"{name}, relabelled", curves.get(name)) for name in ("independent", "chain", "markov")]
        if curves and all(shown):
            of_sizes = zip(*(zip(curve.state_mean, curve.state_worst) for curve in shown if curve))
            for size, cells in zip(next(iter(curves.values())).sizes, of_sizes):
                text = (f"{percent(mean.mean)} / {percent(worst.mean)}" for mean, worst in cells)
                lines.append(_line(world, [f"{size:,}", *text]))
    return lines


def _gain(found: Sequence[Curve], world: str, method: str, other: str) -> str:
    """The difference of two methods on the same data, seed by seed."""
    ours, theirs = (next(c for c in found if (c.world, c.method) == (world, name)) for name in (method, other))
    gains = [estimate([a - b for a, b in zip(*two)], least=-1.0) for two in zip(ours.seeds, theirs.seeds)]
    return _line("Markov chain less chain, both relabelled, same data", (_cell(gain, signed=True) for gain in gains))


def _line(title: str, cells: Iterable[str]) -> str:
    return f"| {' | '.join([title, *cells])} |"


def _cell(of: Estimate, signed: bool = False) -> str:
    mean, half = 100 * of.mean, 100 * half_of(of)
    sign = "+" if signed and round(mean, 1) > 0 else ""
    if half >= 0.05:
        return f"{sign}{mean:.1f} ± {half:.1f}"
    return f"{sign}{mean:.2f}" if 99.95 <= mean < 99.995 else f"{sign}{mean:.1f}"
