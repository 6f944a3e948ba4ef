"""Rows to Markdown tables and to curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from craftrl.figures import COLOURS, chance_line, picture
from craftrl.paper.sweep import Row, estimate

__all__ = ["draw_curves", "grouped", "half_of", "markdown", "mean", "mean_text", "percent", "pivot", "unfolded"]
__all__ += ["video_table", "video_text"]

Text = Callable[[Row], str]


def grouped(rows: Sequence[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows that agree in these fields together, in the order in which they come."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def unfolded(rows: Sequence[Row], field: str, *measures: str) -> list[Row]:
    """One row for each name in the first of `measures`, which are {name: value} in `rows`; `field` is the name."""
    return [
        {**row, field: name, **{measure: row[measure].get(name) for measure in measures}}
        for row in rows
        for name in row[measures[0]]
    ]


def mean(rows: Sequence[Row], name: str) -> float:
    return sum(row[name] for row in rows) / len(rows)


def half_of(values: Sequence[float], least: float = 0.0) -> float:
    """Half the width of the 95% interval before it is cut to what is possible; 0 where seeds are too few for one."""
    e = estimate(values, least)
    return max(e.mean - e.interval[0], e.interval[1] - e.mean) if e.interval else 0.0


def percent(share: float) -> str:
    """In percent with one decimal, and with two where one would make 100 of what is not."""
    return f"{100 * share:.2f}" if 0.9995 <= share < 0.99995 else f"{100 * share:.1f}"


def mean_text(values: Sequence[float], least: float = 0.0) -> str:
    """The mean in percent, and half of its 95% interval where that shows."""
    text, half = percent(sum(values) / len(values)), 100 * half_of(values, least)
    return f"{text} ± {half:.1f}" if half >= 0.05 else text


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


def pivot(rows: Sequence[Row], head: str, line: Text, column: Text, cell: Callable[[list[Row]], str]) -> str:
    """A table of `cell`, the text of the rows of one line and one column; both in the order of the rows."""
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        cells.setdefault((line(row), column(row)), []).append(row)
    lines, columns = (list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    return markdown(
        [head, *columns],
        [[name, *(cell(cells[name, c]) if (name, c) in cells else "-" for c in columns)] for name in lines],
    )


def draw_curves(
    rows: Sequence[Row],
    path: Path,
    panel: Text,
    line: Text,
    x: str,
    xlabel: str,
    chance: dict[str, float],
    ylabel: str = "accuracy (%)",
) -> None:
    """Accuracy against x with 95% intervals: one panel and one curve for each text of `panel` and `line`.

    Values of x stand side by side, whatever their distance; `chance` is what knowing nothing scores, by panel.
    """
    lines = list(dict.fromkeys(map(line, rows)))
    panels = {name: [row for row in rows if panel(row) == name] for name in dict.fromkeys(map(panel, rows))}
    across = min(4, len(panels))
    down = -(-len(panels) // across)
    with picture(path, 3.2 * across + 0.6, 2.5 * down + 0.8) as figure:
        axes_of = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
        for axes, (name, of_panel) in zip(axes_of, panels.items()):
            ticks = sorted({row[x] for row in of_panel})
            for i, label in enumerate(lines):
                mine = sorted(grouped([row for row in of_panel if line(row) == label], x).items())
                found = [estimate([row["accuracy"] for row in group]) for _, group in mine]
                at, colour = [ticks.index(key[0]) for key, _ in mine], COLOURS[i % len(COLOURS)]
                style = ("-", "--", ":")[i // len(COLOURS)]
                axes.plot(at, [100 * e.mean for e in found], style, marker="o", ms=3, color=colour, label=label)
                low, high = ([100 * (e.interval or (e.mean, e.mean))[end] for e in found] for end in (0, 1))
                axes.fill_between(at, low, high, color=colour, alpha=0.15, lw=0)
            if name in chance:
                chance_line(axes, chance[name])
            axes.set_title(name, loc="left", fontsize=8.5)
            axes.set_xlabel(xlabel, fontsize=8)
            axes.set_xticks(range(len(ticks)), [f"{tick:,}" for tick in ticks], fontsize=7.5)
            axes.grid(alpha=0.25)
        for axes in axes_of[len(panels) :]:
            axes.set_visible(False)
        for axes in axes_of[::across]:
            axes.set_ylabel(ylabel)
        handles = {text: handle for axes in axes_of for handle, text in zip(*axes.get_legend_handles_labels())}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=8)


# -- tables of videos ----------------------------------------------------------------------------------------------


def video_text(rows: Sequence[Row]) -> str:
    """Accuracy, its interval, the worst state of the worst seed; then states found and true, or what a probe reads.

    Accuracy is the share of held-out frames that are named right. CRAFT's states are matched with the true ones once,
    for all frames. A rival's are of each step, so that they are matched at each step, and averaged over h = 2..H.
    """
    found = [row["found"] for row in rows if row.get("found") is not None]
    values = [row["pooled" if found else "accuracy"] for row in rows]
    text = percent(mean_of := sum(values) / len(values))
    if len(rows) > 1:
        low, high = estimate(values).interval or (min(values), max(values))
        text = f"{percent(mean_of)} ({percent(low)} to {percent(high)})"
    text += f" / {100 * min(row['state_worst'] for row in rows):.0f}"
    if not found:
        return f"{text}, probe {100 * mean(rows, 'probe'):.0f}"
    of = " of ".join(" to ".join(map(str, sorted({min(n), max(n)}))) for n in (found, [row["true"] for row in rows]))
    return f"{text}, {of} states" + (f", {len(rows)} seeds" if len(rows) > 1 else "")


def video_table(rows: Sequence[Row], line: Text, column: Text) -> str:
    """One line for each technique, one column for each world; the last line is what knowing nothing scores."""
    nothing = [{**row, "nothing": True} for row in rows]
    return pivot(
        [*rows, *nothing],
        "accuracy / worst state of the worst seed, %",
        lambda r: "one state named at every step" if "nothing" in r else line(r),
        column,
        lambda of: f"{100 * mean(of, 'one_state'):.1f}" if "nothing" in of[0] else video_text(of),
    )
