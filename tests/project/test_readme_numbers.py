"""Headlines follow from the committed rows: the README's table, the tables of every study and the answers above them.

`PAGES` has a function for each page that computes the lines of its tables from rows. A page must have just these, and
the answer of a study may have no number that the table below it lacks.

    PYTHONPATH=. python tests/project/test_readme_numbers.py    # writes the tables anew, once rows have changed
"""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from craftrl.paper.sweep import estimate
from craftrl.paper.table1 import NAMES, PUBLISHED, toy_chance
from studies.ablations.spec import NAMES as PARTS
from studies.loud.report import GROUPS, group_of
from studies.planning.report import needed
from studies.statistics import half_of, percent
from studies.techniques import RIVALS

ROOT = Path(__file__).parents[2]
CRAFT = {"technique": "craft"}


@cache
def read(file):
    return [json.loads(text) for text in (ROOT / "studies" / file).read_text().splitlines()]


def rows(file, seeds=0, **settings):
    """The rows of a file that agree with these settings, and so many of them."""
    found = [row for row in read(file) if all(row[name] == value for name, value in settings.items())]
    assert len(found) == seeds if seeds else found, (file, settings, len(found))
    return found


def values(found, measure="accuracy"):
    """A measure of each row; names after a slash lie in dictionaries."""
    for name in measure.split("/"):
        found = [row[name] for row in found]
    return found


def right(found, measure="accuracy"):
    """In percent with a 95% interval, or of fewer than five seeds with the least and the largest value."""
    shares = values(found, measure)
    of, half = estimate(shares), 100 * half_of(estimate(shares))
    if len(shares) >= 5:
        return f"{100 * of.mean:.1f} ± {half:.1f}" if half >= 0.05 else percent(of.mean)
    return percent(of.mean) + (f" ({percent(min(shares))} to {percent(max(shares))})" if len(shares) > 1 else "")


def worst(found, measure="accuracy"):
    """The same, and the accuracy in the worst state of a run, its mean over seeds."""
    single = values(found, measure.replace("accuracy", "state_worst"))
    return f"{right(found, measure)} / {100 * sum(single) / len(single):.0f}"


def video(found):
    """Four cells on models of videos: states found / true, accuracy, the worst state of the worst seed, seeds."""
    states = [row["found"] for row in found]
    accuracy, least = right(found, "pooled"), 100 * min(values(found, "state_worst"))
    return f"{span(states)} / {found[0]['true']} | {accuracy} | {least:.0f} | {len(found)}"


def rival(found):
    """A rival is told the number of states, and its states are matched with the true ones step by step."""
    assert len(found) == 1
    return f"{percent(found[0]['accuracy'])} / {100 * found[0]['state_worst']:.0f}"


def span(numbers):
    return f"{min(numbers)} to {max(numbers)}" if min(numbers) < max(numbers) else str(min(numbers))


def line(*cells):
    return f"| {' | '.join(map(str, cells))} |"


def grid(file, seeds, lines, columns, write=right):
    """A line for each title and its settings, a cell for each column's; a setting `measure` says what is written."""
    table = []
    for title, settings in lines.items():
        cells = []
        for both in ({**settings, **column} for column in columns):
            measure = {"measure": both.pop("measure")} if "measure" in both else {}
            cells.append(write(rows(file, seeds, **both), **measure))
        table.append(line(title, *cells))
    return table


def over(name, *settings):
    return [{name: value} for value in settings]


# -- the tables of each page ------------------------------------------------------------------------------------------


def published(technique, size):
    return ">99.9" if (technique, size) == ("craft", 5000) else percent(PUBLISHED[technique, size])


def readme():
    table, default = [], "markov, relabelled"
    for size in (500, 1000, 5000):
        found = rows("table1/rows.jsonl", 20, size=size, **CRAFT)
        other = [row.get(f"steps_with_{n}", 0) for row in found for n in ("no_state", "one_state", "too_many_states")]
        states = f"2 / 2 at {100 - 100 * sum(other) / (20 * 29):.0f}% of steps"
        least = f"{100 * min(values(found, 'state_worst')):.0f}"
        paper = f"{published('craft', size)}, the paper's"
        table.append(line(f"paper's Table 1, {size:,}", states, right(found), least, 20, paper))
    found = rows("efficiency/rows.jsonl", 20, world="paper", size=200)
    assert set(values(found, f"right_counts/{default}")) == {1.0}
    least = f"{100 * min(values(found, f'state_worst/{default}')):.0f}"
    paper = f"{right(found, 'accuracy/independent')}, the paper's algorithm"
    table.append(
        line("same world, 200, default coupling", "2 / 2", right(found, f"accuracy/{default}"), least, 20, paper)
    )
    for title, file, settings in (
        ("4x4 cells in video, 1,000", "pixels/few.jsonl", {"n": 1000}),
        ("9x9 cells in four rooms, 20,000", "pixels/rooms.jsonl", {"size": 9}),
        ("13x13 cells in four rooms, 20,000", "pixels/rooms.jsonl", {"size": 13}),
        ("Freeway (Atari), 6,000", "games/rows.jsonl", {"world": "freeway"}),
        ("Seaquest (Atari), 6,000", "games/rows.jsonl", {"world": "seaquest"}),
    ):
        found, told = rows(file, **settings, **CRAFT), {**settings, "technique": "ac-state"}
        beside = [row for row in read(file) if all(row[name] == value for name, value in told.items())]
        knows_nothing = f"{100 * sum(values(found, 'one_state')) / len(found):.1f}, naming one state"
        against = f"{right(beside)}, AC-State with actions, {len(beside)} seed" if beside else knows_nothing
        table.append(line(title, video(found), against))
    return [table]


def table1():
    table, sizes = [], over("size", 500, 1000, 5000)
    for technique, name in NAMES.items():
        table.append(line(f"{name}, the paper", *(published(technique, of["size"]) for of in sizes)))
        for seeds, folder in ((20, "table1"), (200, "table1-200-seeds")):
            lines = {f"{name}, {seeds} seeds": {"technique": technique}}
            table += grid(f"{folder}/rows.jsonl", seeds, lines, sizes, worst)
    return [[*table, line("chance: a random feature", *[percent(toy_chance(read("table1/rows.jsonl")))] * 3)]]


def error_growth():
    table = []
    for scenario in ("toy", "creeping", "corrupted"):
        for learner in ("craft", "draft"):
            wrong = values(rows("error_growth/rows.jsonl", 20, scenario=scenario, learner=learner), "wrong")
            means = (f"{100 * sum(run[h - 1] for run in wrong) / 20:.1f}" for h in (2, 10, 20))
            table.append(line(scenario, learner.upper(), *means, f"{100 * max(run[19] for run in wrong):.1f}"))
    return [table]


def efficiency():
    file, of = "efficiency/rows.jsonl", "accuracy/{}".format
    names = {
        "each pair of steps by itself, as in the paper": "independent",
        "the same, relabelled": "independent, relabelled",
    }
    names |= {"chain, relabelled": "chain, relabelled", "Markov chain, relabelled: the default": "markov, relabelled"}
    names |= {"told the true neighbours": "genie"}
    lines = {title: {"world": "paper", "measure": of(name)} for title, name in names.items()}
    first = grid(file, 20, lines, over("size", 100, 200, 500, 1000, 5000))
    first.append(line("chance: a random feature", *[percent(toy_chance(read("table1/rows.jsonl")))] * 5))
    second = []
    for title, world, size in (
        ("noise does not give the state away", "control", 200),
        ("agents that hardly move", "sticky", 200),
        ("combination lock, three states a step", "lock", 250),
        ("three agents that take turns", "three agents", 100),
        ("noise guides one move in 20", "guided by noise", 200),
        ("two values too many at one step", "excess at h = 2", 500),
        ("two values too many at every step", "excess at every h", 2000),
    ):
        more = "" if "excess" in world else ", relabelled"
        columns = over("measure", of("independent"), of(f"chain{more}"), of(f"markov{more}"))
        second += grid(file, 20, {f"{title} | {size:,}": {"world": world, "size": size}}, columns, worst)
    return [first, second]


def agents():
    lines = {}
    for kind, title in (("turns", "take turns"), ("extreme", "differ everywhere"), ("middle", "agent 0 in the middle")):
        for total in (600, 1200, 4800):
            lines[f"{title} | {total:,}"] = {"kind": kind, "total": total, "coupling": "chain", "factor": 1.0}
    chance = percent(toy_chance(read("agents/rows.jsonl")))
    return [
        [*grid("agents/rows.jsonl", 20, lines, over("n_agents", 2, 3, 4, 6), worst), line("chance", "", *[chance] * 4)]
    ]


def bounds():
    table = []
    for kind, seeds in (("paper", 20), ("subtle", 5), ("rare", 5)):
        for size in (1000, 5000):
            for coupling in ("independent", "chain"):
                found = rows("bounds/rows.jsonl", seeds, agents=kind, size=size)
                shown = [worst(found, f"accuracy/{coupling}/{choice}") for choice in ("true", "auto")]
                off = [name for name in found[0]["accuracy"][coupling] if " x " in name]
                means = [sum(values(found, f"accuracy/{coupling}/{name}")) / seeds for name in off]
                table.append(line(kind, f"{size:,}", coupling, *shown, percent(min(means)), seeds))
    return [table]


def worlds():
    def recovered(found):
        whole = ("accuracy", "steps_with_right_state_count", "graph_precision", "graph_recall")
        return f"{worst(found)}, {sum(all(row[name] == 1 for name in whole) for row in found)}"

    sizes = [("lock", n) for n in (1000, 4000, 16000)] + [("multimaze", n) for n in (5000, 10000, 20000)]
    lines = {f"{world} | {size:,}": {"world": world, "size": size} for world, size in sizes}
    return [grid("worlds/rows.jsonl", 10, lines, over("coupling", "independent", "chain"), recovered)]


def robustness():
    shown = {"slips": (0.2, 0.6), "mislabelled": (0.2, 0.4), "corrupted": (0.2, 0.5), "agreement": (0.1, 0.5)}
    shown |= {"hidden": (1.0,), "leaks": (0.05, 0.1), "starts": (0.3, 0.5), "noise": (0.1, 0.3)}
    shown |= {"alike": (0.1, 0.5), "alike, sticky": (0.1, 0.5)}
    lines = {"nothing |": {"violation": "none", "n": 1000, "world": "toy"}}
    for name, of in shown.items():
        world = "control" if name in ("starts", "noise", "alike", "alike, sticky") else "toy"
        lines |= {f"{name} | {size:g}": {"violation": name, "size": size, "n": 1000, "world": world} for size in of}
    first, second = grid("robustness/rows.jsonl", 10, lines, over("learner", "paper", "markov", "default"), worst), []
    for learner in ("default", "paper"):
        for verdict in ("trust", "check", "do not trust"):
            found = rows("robustness/rows.jsonl", learner=learner, verdict=verdict)
            good, fine = [row for row in found if row["state_worst"] >= 0.95], values(found)
            second.append(
                line(learner, verdict, len(found), len(good), percent(sum(fine) / len(fine)), percent(min(fine)))
            )
    return [first, second]


def collectors():
    titles = {"markov": "3/4: the paper's", "memory": "0.9 if it repeated its first state, else 0.3"}
    titles |= {
        "switching": "0.9 or 0.6, drawn for each episode",
        "adaptive": "0.9 in the state it met less often, else 0.6",
    }
    titles |= {"two back": "3/4, but the state before the last"}
    table = []
    for kind, title in titles.items():
        cells = []
        for size in (200, 1000):
            for twin in (False, True):
                mine = {"kind": kind, "size": size, "twin": twin, "coupling": "markov"}
                cells.append("" if twin and kind == "markov" else right(rows("collectors/rows.jsonl", 10, **mine)))
        table.append(line(title, *cells))
    return [table]


def loud():
    table = []
    for encoders in ("coordinates", "functions"):
        for group in GROUPS:
            found = [
                row for row in rows("loud/rows.jsonl", worlds="fresh", encoders=encoders) if group_of(row) == group
            ]
            counts = sum(values(found, "warned")), sum(row["verdict"] == "trust" for row in found)
            table.append(line(encoders, group, len(found), *counts))
    return [table]


def pixels():
    first = []
    for title, file, settings in (
        *((f"4x4 cells, {k} walkers | 5,000", "rows", {"walkers": k}) for k in (0, 4, 8)),
        *((f"4x4 cells, 4 walkers | {n:,}", "few", {"n": n}) for n in (500, 1000)),
        *((f"{k}x{k} cells, clips of six frames | 1,000", "cuts", {"size": k, "cut": "clips"}) for k in (3, 4)),
        *((f"{k}x{k} cells, unequal lengths | 1,000", "cuts", {"size": k, "cut": "unequal"}) for k in (3, 4)),
        *((f"{k}x{k} cells in four rooms | 20,000", "rooms", {"size": k}) for k in (9, 13)),
    ):
        found = rows(f"pixels/{file}.jsonl", **settings, **CRAFT)
        first.append(line(title, video(found), f"{100 * sum(values(found, 'one_state')) / len(found):.1f}"))
    second = {name: {"technique": technique} for technique, name in RIVALS.items()}
    return [first, grid("pixels/rows.jsonl", 1, second, over("walkers", 0, 4, 8), rival)]


def games():
    first = []
    for cut, file in (("whole", "rows"), ("clips", "cuts"), ("unequal", "cuts")):
        for world in ("freeway", "seaquest"):
            found = rows(f"games/{file}.jsonl", 3, world=world, cut=cut, **CRAFT)
            first.append(line(world, cut, video(found), f"{100 * found[0]['one_state']:.1f}"))
    second = {name: {"technique": technique} for technique, name in RIVALS.items()}
    return [first, grid("games/rows.jsonl", 1, second, over("world", "freeway", "seaquest", "minigrid", "doom"), rival)]


def planning():
    table = []
    for title, file, settings in (
        ("3x3 cells, 2 walkers, 32 moves, true bounds told", "rows", {"world": "pixels"}),
        ("multi-maze, 70 moves, true bounds told", "rows", {"world": "multimaze"}),
        ("4x4 cells, 4 walkers, 60 moves", "full", {"world": "pixels"}),
        ("four rooms, 252 moves", "full", {"world": "rooms"}),
        ("MiniGrid with figures, 215 moves", "full", {"world": "minigrid"}),
        ("Freeway, 27 moves", "full", {"world": "freeway"}),
    ):
        craft = rows(f"planning/{file}.jsonl", 2, **settings, **CRAFT)
        assert {row["bounds"] for row in craft} == {"true" if "told" in title else "auto"}
        cells = [f"{span(values(craft, 'n_states'))} / {craft[0]['n_states_true']}"]
        for technique, kind in (("craft", ""), ("craft", "_latent"), ("true", ""), ("ac-state", ""), ("paired", "")):
            rival = "multimaze" if (file, settings["world"]) == ("rows", "multimaze") and technique in RIVALS else file
            cells.append(steps(rows(f"planning/{rival}.jsonl", 2, **settings, technique=technique), f"online{kind}"))
        table.append(line(title, *cells))
    learned = []
    for learner in ("Q-table on states", "PPO on states", "DQN on states", "PPO from pixels", "DQN from pixels"):
        goals = [
            [row for row in rows("planning/policies.jsonl", learner=learner) if row["goal"] == goal] for goal in GOALS
        ]
        learned.append(line(learner, *(", ".join(map(str, values(of, "steps_to_95"))) or "not run" for of in goals)))
    latent = []
    for walkers in (0, 2, 4, 8):
        both = [
            rows("planning/distractors.jsonl", 2, walkers=walkers, technique=of) for of in ("craft", "latent-action")
        ]
        assert set(values(both[0], "bounds")) == {"true"}
        measures = (both[0], "accuracy"), (both[0], "agreement/overall"), (both[1], "agreement/by_group")
        latent.append(line(walkers, *(", ".join(map(percent, values(*of))) for of in measures)))
    return [table, learned, latent]


GOALS = ("3x3, corner", "4x4, corner", "4x4, middle")


def steps(found, kind):
    """The environment steps from which on 95% of the goals are reached, or what is reached in the end by each seed."""
    curves = values(found, kind)
    number = needed(found[0]["labels"], [sum(at) / len(at) for at in zip(*curves)])
    return f"{number}" if number is not None else "never: " + ", ".join(f"{100 * curve[-1]:.0f}%" for curve in curves)


def ablations():
    def short(found):
        return video(found).replace(f" / {found[0]['true']} |", " states:").rpartition(" | ")[0].replace(" | ", " / ")

    lines = {title: {"part": part} for part, title in PARTS.items()}
    return [grid("ablations/rows.jsonl", 2, lines, over("cut", "whole", "clips"), short)]


def benchmarks():
    of = {
        name: json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())["rows"]
        for name in ("exact_engine", "network_trust")
    }
    speed = []
    for row in sorted(of["exact_engine"], key=lambda row: (row["M"], row["n"])):
        one = row["one thread"]
        seconds = [
            row["numpy products"],
            one["count"],
            one["fit"],
            row["log-odds"]["chain"],
            row["log-odds"].get("markov"),
        ]
        cells = ("not run" if s is None else f"{1000 * s:,.1f}" for s in seconds)
        speed.append(line(row["M"], f"{row['n']:,}", f"{row['literal (extrapolated)'] / 60:,.1f}", *cells))
    groups = {}
    for row in of["network_trust"]:
        found = "nearly right: over 95% of all" if row["accuracy"] > 0.95 and not row["at chance"] else "wrong"
        group = f"planted: {row['fault']}" if row["fault"] else "right" if row["worst state"] >= 0.95 else found
        groups.setdefault(group, []).append(row["verdict"])
    trust = [
        line(group, *map(groups[group].count, ("trust", "check", "do not trust")))
        for group in sorted(groups, key=lambda group: "rnwp".index(group[0]))
    ]
    return [speed, trust]


PAGES = {"README.md": readme, "benchmarks/README.md": benchmarks}
of_studies = (
    table1,
    error_growth,
    efficiency,
    agents,
    bounds,
    worlds,
    robustness,
    collectors,
    loud,
    pixels,
    games,
    planning,
    ablations,
)
PAGES |= {f"studies/{of.__name__}/README.md": of for of in of_studies}


def bodies(text):
    """The lines of each table of a page, without its head."""
    return [body.splitlines() for body in re.findall(r"^\|[-| ]+\|\n((?:\|.*\n)+)", text, flags=re.M)]


def first_cell(lines):
    return lines[0].split("|")[1].strip()


@pytest.mark.parametrize("page", PAGES)
def test_tables_follow_from_the_rows(page):
    shown = {first_cell(body): body for body in bodies((ROOT / page).read_text())}
    for computed in PAGES[page]():
        assert shown[first_cell(computed)] == computed


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("studies")])
def test_an_answer_has_the_numbers_of_its_table(page):
    """The first table of a study is computed, and the answer above it quotes it."""
    text = (ROOT / page).read_text()
    answer, table = re.search(r"^\*\*Answer\.\*\*(.*?)\n\n.*?((?:^\|[^\n]*\n)+)", text, re.M | re.S).groups()
    assert table.splitlines()[2:] == PAGES[page]()[0]
    numbers = [set(re.findall(r"\d+(?:[.,]\d+)*", part)) for part in (answer, table)]
    assert numbers[0] <= numbers[1], f"{numbers[0] - numbers[1]} is not in the table"


def test_every_study_with_rows_has_computed_tables():
    others = {
        "studies/table1-200-seeds/README.md",
        "studies/figures/README.md",
    }  # one table with table1; pictures alone
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "studies").glob("*/README.md")}
    assert pages - others == {page for page in PAGES if page.startswith("studies")}


def main():
    for page, of in PAGES.items():
        text = (ROOT / page).read_text()
        for computed in of():
            for body in bodies(text):
                if first_cell(body) == first_cell(computed):
                    text = text.replace("\n".join(["", *body, ""]), "\n".join(["", *computed, ""]))
        (ROOT / page).write_text(text)


if __name__ == "__main__":
    main()
