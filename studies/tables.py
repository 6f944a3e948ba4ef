"""Rows to tables, to the text of their cells, and to curves. READMEs and reports are made of the same cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from craftrl.figures import COLOURS, chance_line, picture
from craftrl.paper.sweep import Row, estimate
from studies.techniques import NAMES

Text = Callable[[Row], str]
Cell = Callable[[Sequence[Row]], str]
WORDS = NAMES | {"draft": "DRAFT"}


def pick(rows: Sequence[Row], **only: Any) -> list[Row]:
    """The rows that have these settings; a tuple gives several values."""
    return [row for row in rows if all(row.get(k) in (v if isinstance(v, tuple) else (v,)) for k, v in only.items())]


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


# -- tables --------------------------------------------------------------------------------------------------------


def lines_of(rows: Sequence[Row], lines: str, columns: str, cell: Cell) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The values of the settings `columns`, and a line of Markdown for each of the settings `lines`.

    Both come in the order of the rows, and ascending where they are whole numbers.
    """

    def keys(names: str) -> list[tuple[Any, ...]]:
        found = list(grouped(rows, *names.split()))
        return sorted(found) if all(type(value) is int for key in found for value in key) else found

    cells = grouped(rows, *lines.split(), *columns.split())
    at = {key: cell(mine) for key, mine in cells.items()}
    heads = keys(columns)
    return heads, [write(*line, *(at.get((*line, *column), "") for column in heads)) for line in keys(lines)]


def table(rows: Sequence[Row], lines: str, columns: str, cell: Cell, measures: Sequence[str] = ()) -> str:
    """The same with a head. A cell that holds several columns, divided by |, has a name for each in `measures`."""
    names = columns.split()
    heads, body = lines_of(rows, lines, columns, cell)
    titles = [" ".join(v if isinstance(v, str) else f"{k} {v:,}" for k, v in zip(names, head)) for head in heads]
    titles = [", ".join(filter(None, (title, measure))) for title in titles for measure in measures or [""]]
    head = write(*lines.split(), *titles)
    return "\n".join([head, "|" + "---|" * (head.count("|") - 1), *body])


def write(*cells: Any) -> str:
    return f"| {' | '.join(f'{of:,}' if isinstance(of, int) else str(WORDS.get(of, of)) for of in cells)} |"


# -- cells ---------------------------------------------------------------------------------------------------------


def mean(rows: Sequence[Row], name: str) -> float:
    return sum(row[name] for row in rows) / len(rows)


def half_of(values: Sequence[float]) -> float:
    """Half the width of the 95% interval before it is cut to what is possible; 0 where seeds are too few for one."""
    e = estimate(values)
    return max(e.mean - e.interval[0], e.interval[1] - e.mean) if e.interval else 0.0


def percent(share: float) -> str:
    """In percent with one decimal, and with two where one would make 100 of what is not."""
    return f"{100 * share:.2f}" if 0.9995 <= share < 0.99995 else f"{100 * share:.1f}"


def span(numbers: Sequence[float]) -> str:
    return f"{min(numbers)} to {max(numbers)}" if min(numbers) < max(numbers) else str(min(numbers))


def right(rows: Sequence[Row], measure: str = "accuracy") -> str:
    """In percent with a 95% interval, or of fewer than five seeds with the least and the largest value."""
    shares = [row[measure] for row in rows]
    assert len({row["seed"] for row in rows}) == len(shares)
    half, (low, high) = 100 * half_of(shares), (percent(of(shares)) for of in (min, max))
    ends = f" ({low} to {high})" if len(shares) < 5 and low != high else ""
    return percent(mean(rows, measure)) + (f"±{half:.1f}" if half >= 0.05 else ends)


def worst(rows: Sequence[Row]) -> str:
    """The same, and the accuracy in the worst state of a run, its mean over seeds."""
    return f"{right(rows)} / {100 * mean(rows, 'state_worst'):.0f}"


def least(rows: Sequence[Row]) -> str:
    """The accuracy in the worst state of the worst seed."""
    return f"{100 * min(row['state_worst'] for row in rows):.0f}"


def video(rows: Sequence[Row]) -> str:
    """States found / true, accuracy, the worst state of the worst seed, seeds, naming one state.

    Accuracy is the share of held-out frames that are named right. CRAFT's states are matched with the true ones once,
    for all frames.
    """
    states = f"{span([row['found'] for row in rows])} / {rows[0]['true']}"
    shares = right(rows, "pooled"), least(rows)
    return " | ".join([states, *shares, str(len(rows)), f"{100 * mean(rows, 'one_state'):.1f}"])


VIDEO = ("found / true", "right, %", "worst state, %", "seeds", "one state, %")


def brief(rows: Sequence[Row]) -> str:
    return f"{right(rows, 'pooled')} / {least(rows)}, {span([row['found'] for row in rows])} of {rows[0]['true']}"


def rival(rows: Sequence[Row]) -> str:
    """A rival is given the number of states, and its states are matched with the true ones step by step."""
    return f"{right(rows)} / {least(rows)}"


def video_report(rows: Sequence[Row], world: str) -> str:
    """CRAFT's runs, and those of its rivals, in each world, which these settings tell apart."""
    craft, rivals = pick(rows, technique="craft"), [row for row in rows if row["technique"] != "craft"]
    blocks = [table(craft, world, "", video, VIDEO)] if craft else []
    if rivals:
        blocks += [
            "Accuracy / worst state, and what a linear probe reads, %.",
            table(rivals, "technique", world, _probed),
        ]
    return "\n\n".join(blocks)


def _probed(rows: Sequence[Row]) -> str:
    return f"{rival(rows)}, {100 * mean(rows, 'probe'):.0f}"


# -- curves --------------------------------------------------------------------------------------------------------


def draw_curves(
    rows: Sequence[Row],
    path: Path,
    panel: Text,
    line: Text,
    x: str,
    xlabel: str,
    chance: dict[str, float],
    ylabel: str = "accuracy (%)",
    log: bool = False,
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
            axes.set_yscale("log" if log else "linear")
        for axes in axes_of[len(panels) :]:
            axes.set_visible(False)
        for axes in axes_of[::across]:
            axes.set_ylabel(ylabel)
        handles = {text: handle for axes in axes_of for handle, text in zip(*axes.get_legend_handles_labels())}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=8)
