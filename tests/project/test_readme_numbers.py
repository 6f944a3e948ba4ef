"""Headlines follow from the committed rows: the README's table, the tables of every study, and the answers above them.

`tables` says how those of each page are computed: of which rows, which settings have a line each and which a column,
and what a cell says. `ANSWERS` and `QUOTED` have the sentences with numbers, and the cell of each number.

    PYTHONPATH=. python tests/project/test_readme_numbers.py    # writes the tables anew, once rows have changed
"""

import json
import re
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest

from craftrl.paper.table1 import NAMES, PUBLISHED
from examples.goals import steps_to
from studies.bounds.run import known_and_chosen
from studies.loud.run import GROUPS, group_of, warnings_and_trust
from studies.planning.report import LEVEL
from studies.study import read_rows
from studies.tables import (
    brief,
    least,
    lines_of,
    mean,
    percent,
    pick,
    right,
    rival,
    span,
    unfolded,
    video,
    worst,
    write,
)
from studies.techniques import RIVALS
from studies.verdicts.run import models
from studies.verdicts.run import verdicts as counts
from studies.worlds.run import recovered

ROOT = Path(__file__).parents[2]
WITHOUT = ("studies/figures/README.md", "studies/table1-200-seeds/README.md")  # pictures; rows that table1 shows
PAGES = [page.relative_to(ROOT).as_posix() for page in sorted((ROOT / "studies").glob("*/README.md"))]
PAGES = ["README.md", "benchmarks/README.md", *(page for page in PAGES if page not in WITHOUT)]
GIVEN = {"true": "true alpha, eta, nu", "auto": "nothing"}


def read(*names):
    """The rows of these files of studies."""
    return [row for name in names for row in read_rows(ROOT / "studies" / f"{name}.jsonl")]


def table(rows, lines, columns, cell, **only):
    """The numbers in the head; then a line for each value of the settings `lines`, a cell for each of `columns`."""
    heads, body = lines_of(pick(rows, **only), lines, columns, cell)
    return [[value for head in heads for value in head if type(value) is int], *body]


# -- cells that reports do not have -----------------------------------------------------------------------------------


def growth(rows):
    """The share of wrong labels at three steps, mean over seeds, and at the last step of the worst seed."""
    wrong = [row["wrong"] for row in rows]
    means = [f"{100 * sum(run[h - 1] for run in wrong) / len(wrong):.1f}" for h in (2, 10, 20)]
    return " | ".join([*means, f"{100 * max(run[-1] for run in wrong):.1f}"])


def verdicts(rows):
    right_ones = [row for row in rows if row["state_worst"] >= 0.95]
    accuracy = percent(mean(rows, "accuracy")), percent(min(row["accuracy"] for row in rows))
    return " | ".join([str(len(rows)), str(len(right_ones)), *accuracy])


def one_seed(rows):
    assert len(rows) == 1
    return rival(rows)


def steps(rows):
    """From how many environment steps on 95% of the goals are reached, or what each seed reaches in the end."""
    if rows[0]["who"] == "found / true":
        return f"{span([row['n_states'] for row in rows])} / {rows[0]['n_states_true']}"
    curves = [row["online_latent" if "latent" in row["who"] else "online"] for row in rows]
    number = steps_to(LEVEL, list(zip(rows[0]["labels"], [sum(at) / len(at) for at in zip(*curves)])))
    return str(number) if number is not None else "never: " + ", ".join(f"{100 * curve[-1]:.0f}%" for curve in curves)


# -- tables -----------------------------------------------------------------------------------------------------------


def published(technique, size):
    return ">99.9" if (technique, size) == ("craft", 5000) else percent(PUBLISHED[technique, size])


def table_1():
    rows = [{"technique": k, "size": n, "runs": "the paper", "share": published(k, n)} for k, n in PUBLISHED]
    rows += [{**row, "runs": "20 seeds"} for row in read("table1/rows")]
    rows += [{**row, "runs": "200 seeds"} for row in read("table1-200-seeds/rows")]
    rows = [{**row, "technique": NAMES[row["technique"]]} for name in NAMES for row in pick(rows, technique=name)]
    return table(rows, "technique runs", "size", lambda rows: rows[0].get("share") or worst(rows))


def planning():
    rows = [row for row in read("planning/rows", "planning/multimaze", "planning/full") if "online" in row]
    given = {(row["world"], row["size"]): GIVEN[row["bounds"]] for row in pick(rows, technique="craft")}
    who = {"found / true": "craft", "craft": "craft", "craft, latent": "craft"}
    who |= {name: name for name in ("true", "ac-state", "paired")}
    rows = [{**row, "who": of} for of, name in who.items() for row in pick(rows, technique=name)]
    return table(
        [{**row, "given": given[row["world"], row["size"]]} for row in rows], "world given n_moves", "who", steps
    )


def latent_actions():
    rows = [{**row, **row["agreement"]} for row in read("planning/distractors")]
    assert {row["bounds"] for row in pick(rows, technique="craft")} == {"true"}
    best = [{**row, "accuracy": row.get("overall", row["by_group"])} for row in rows]  # rivals have one group
    return table(best, "walkers", "technique", right)


def engine():
    rows = json.loads((ROOT / "benchmarks/results/exact_engine.json").read_text())["rows"]

    def milliseconds(rows):
        (row,) = rows
        of = [row["numpy products"], row["one thread"]["count"], row["one thread"]["fit"]]
        of += [row["log-odds"]["chain"], row["log-odds"].get("markov")]
        cells = ("not run" if seconds is None else f"{1000 * seconds:,.1f}" for seconds in of)
        return " | ".join([f"{row['literal (extrapolated)'] / 60:,.1f}", *cells])

    return table(rows, "M n", "", milliseconds)


def readme(methods):
    """World | found / true | right | worst state | seeds | reference."""
    lines: list = [[]]
    for size in (500, 1000, 5000):
        rows = pick(read("table1/rows"), technique="craft", size=size)
        other = [row.get(f"steps_with_{of}", 0) for row in rows for of in ("no_state", "one_state", "too_many_states")]
        states = f"2 / 2 at {100 - 100 * sum(other) / (29 * len(rows)):.0f}% of steps"
        paper = f"{published('craft', size)}, the paper's"
        lines.append(write(f"paper's Table 1, {size:,}", states, right(rows), least(rows), len(rows), paper))
    default, paper = (pick(methods, world="paper", size=200, method=of) for of in ("markov, relabelled", "independent"))
    assert {row["right_counts"]["markov, relabelled"] for row in default} == {1}
    cells = "2 / 2", right(default), least(default), len(default), f"{right(paper)}, the paper's algorithm"
    lines.append(write("same world, 200, default coupling", *cells))
    for title, file, settings in (
        ("4x4 cells in video, 1,000", "pixels/few", {"n": 1000}),
        ("9x9 cells in four rooms, 20,000", "pixels/rooms", {"size": 9}),
        ("13x13 cells in four rooms, 20,000", "pixels/rooms", {"size": 13}),
        ("Freeway (Atari), 6,000", "games/rows", {"world": "freeway"}),
        ("Seaquest (Atari), 6,000", "games/rows", {"world": "seaquest"}),
    ):
        craft, others = (pick(read(file), technique=of, **settings) for of in ("craft", "ac-state"))
        cells, _, one_state = video(craft).rpartition(" | ")
        rival = (
            f"{right(others)}, AC-State with actions, {len(others)} seed"
            if others
            else f"{one_state}, naming one state"
        )
        lines.append(write(title, cells, rival))
    return lines


@cache
def tables():
    methods = unfolded(read("efficiency/rows"), "method", "accuracy", "state_worst")
    relabelled = ("independent", "independent, relabelled", "chain, relabelled", "markov, relabelled", "genie")
    elsewhere = [("control", 200), ("sticky", 200), ("lock", 250), ("three agents", 100), ("guided by noise", 200)]
    others = [row for world, size in elsewhere for row in pick(methods, world=world, size=size)]
    choices = unfolded(read("bounds/rows"), "coupling", "accuracy", "state_worst")
    choices = unfolded(choices, "choice", "accuracy", "state_worst")
    broken = pick(read("robustness/rows"), n=1000, learner=("paper", "default"))
    asked = [(learner, verdict) for learner in ("default", "paper") for verdict in ("trust", "check", "do not trust")]
    judged = [row for a, b in asked for row in pick(read("robustness/rows"), learner=a, verdict=b)]
    fresh = [{**row, "group": group_of(row)} for row in pick(read("loud/rows"), worlds="fresh")]
    kinds = [(encoders, group) for encoders in ("coordinates", "functions") for group in GROUPS]
    fresh = [row for a, b in kinds for row in pick(fresh, encoders=a, group=b)]
    videos = read("pixels/rows", "pixels/few", "pixels/cuts", "pixels/rooms")
    games, rivals = read("games/rows", "games/cuts"), tuple(RIVALS)
    of = {
        "table1": [table_1()],
        "error_growth": [table(read("error_growth/rows"), "scenario learner", "", growth)],
        "efficiency": [
            table(methods, "method", "size", right, world="paper", size=(100, 200, 500, 1000, 5000), method=relabelled),
            table(others, "world size", "method", worst, method=(relabelled[0], *relabelled[2:4])),
        ],
        "agents": [
            table(
                read("agents/rows"),
                "kind total",
                "n_agents",
                worst,
                coupling="chain",
                factor=1,
                total=(600, 1200, 4800),
            )
        ],
        "bounds": [table(choices, "agents size coupling", "", known_and_chosen)],
        "worlds": [
            table(
                read("worlds/rows"), "world size", "coupling", recovered, size=(1000, 4000, 5000, 10000, 16000, 20000)
            )
        ],
        "robustness": [
            table(broken, "violation size", "learner", worst, world="toy", size=(0, 0.1, 0.5)),
            table(broken, "violation size", "learner", worst, world="control", size=(0.1, 0.5)),
            table(judged, "learner verdict", "", verdicts),
        ],
        "collectors": [table(read("collectors/rows"), "kind", "size twin", right, coupling="markov")],
        "loud": [table(fresh, "encoders group", "", warnings_and_trust)],
        "verdicts": [table(models(read("verdicts/rows")), "group", "", counts)],
        "pixels": [
            table(videos, "size walkers cut n", "", video, technique="craft"),
            table(read("pixels/rows"), "technique", "walkers", one_seed, technique=rivals),
        ],
        "games": [
            table(games, "world cut", "", video, technique="craft"),
            table(read("games/rows"), "technique", "world", one_seed, technique=rivals),
        ],
        "planning": [planning(), latent_actions()],
        "ablations": [table(read("ablations/rows"), "part", "cut", brief)],
    }
    pages = {f"studies/{name}/README.md": computed for name, computed in of.items()}
    return {"README.md": [readme(methods)], "benchmarks/README.md": [engine()], **pages}


# Sentences of answers that have numbers; {line > column} is the number in that cell of the table below the answer.
ANSWERS = {
    "verdicts": [
        "{right > trust} of {right > models} right models are trusted, {wrong, all > trust} of {wrong, all > models} "
        "wrong ones.",
    ],
    "table1": [
        "With 200 seeds all nine cells agree with the paper",
        "With 20, as in the paper, CRAFT at 1,000 looks better than it is: {CRAFT | 20 seeds > 1,000} against "
        "{CRAFT | 200 seeds > 1,000} over 200 seeds.",
    ],
    "error_growth": [
        "both are wrong on {corrupted | CRAFT > h = 2}% of all trajectories at h = 2; at h = 20 CRAFT is wrong on "
        "{corrupted | CRAFT > h = 20}% and DRAFT on {corrupted | DRAFT > h = 20}%."
    ],
    "efficiency": [
        "with 200 trajectories per agent it names {markov, relabelled > 200}% of the observations right, the paper's "
        "choice {independent > 200}%, and with 500 {independent > 500}%."
    ],
    "agents": [
        "two are left at {turns | 1,200 > 2 agents}%, near chance, and three reach {turns | 1,200 > 3}% with 1,200 "
        "trajectories in all.",
        "{extreme | 600 > 2 agents}% with two and {extreme | 600 > 6}% with six of them at 600.",
    ],
    "bounds": [
        "({subtle | 1,000 | independent > chosen}% against {subtle | 1,000 | independent > true bounds}% for subtle "
        "agents at 1,000).",
        "with the paper's agents ({paper | 1,000 | independent > off by two, worst}%); with subtle ones both couplings "
        "fall to {subtle | 1,000 | chain > off by two, worst}%",
    ],
    "worlds": [
        "From 16,000 trajectories per agent on in the combination lock ({lock | 16,000 > chain: recovered} seeds), and "
        "from 20,000 in the multi-maze ({multimaze | 20,000 > chain: recovered}).",
        "at 10,000 in the maze they read every held-out observation right ({multimaze | 10,000 > chain}%).",
    ],
    "robustness": [
        "{slips | 0.1 > default}% with a tenth of slips, {mislabelled | 0.1 > default}% of wrong names, "
        "{corrupted | 0.1 > default}% of foreign frames.",
        "({leaks | 0.1 > default}% with a tenth of such leaks)",
        "({alike | 0.1 > default}%)",
    ],
    "collectors": ["({two back > 1,000 per agent}%, its twin {two back > twin, 1,000}%)"],
    "loud": [
        "With coordinates `fit` warned of {coordinates | wrong > `fit` warned} of {coordinates | wrong > models} wrong "
        "models, with lists of functions of {functions | wrong > `fit` warned} of {functions | wrong > models}",
        "{coordinates | right > `diagnose` trusts} of {coordinates | right > models} and "
        "{functions | right > `diagnose` trusts} of {functions | right > models} right models are trusted",
    ],
    "pixels": [
        "16 states of 4x4 cells from 500 videos per agent on ({4 | 4 | whole | 500 > right, %}%), all 68 of four rooms "
        "({9 | 4 | whole | 20,000 > right, %}%), {13 | 8 | whole | 20,000 > found / true} in larger rooms.",
    ],
    "games": [
        "it is right on {freeway | whole > right, %}% and {seaquest | whole > right, %}% of the frames, but not about "
        "the number of states: {freeway | whole > found / true} and "
        "{seaquest | whole > found / true} found / true.",
    ],
    "planning": [
        "{pixels | true alpha, eta, nu > CRAFT} environment steps in the small pixel world, {rooms > CRAFT} in four "
        "rooms, {rooms > with latent actions} there with latent actions.",
        "MiniGrid, with {minigrid > found / true} states, ends at {minigrid > CRAFT} (two seeds), Freeway at "
        "{freeway > CRAFT}, where the true states end at {freeway > true states}.",
    ],
    "ablations": [
        "every variant finds all 16 states.",
        "without noise on the inputs the mean is {noise > clips of six frames}%, by default "
        "{default > clips of six frames}%.",
    ],
}

QUOTED = [
    (
        "docs/settings.md",
        "efficiency",
        "`\"markov\"` is right on {markov, relabelled > 200}% of the observations in the paper's world and the paper's "
        "coupling on {independent > 200}%",
    ),
    (
        "docs/acting.md",
        "planning",
        "{pixels | true alpha, eta, nu > CRAFT} labels are enough to reach 95% of random goals, and "
        "{pixels | true alpha, eta, nu > with latent actions} with latent actions; in four rooms of 68 cells "
        "{rooms > CRAFT} and {rooms > with latent actions}.",
    ),
    ("docs/is-it-right.md", "robustness", "9 of {default | trust > models} trusted models were wrong"),
    (
        "docs/is-it-right.md",
        "verdicts",
        "| {wrong, all > trust} of {wrong, all > models} | {right > trust} of {right > models} |",
    ),
]


# -- pages ------------------------------------------------------------------------------------------------------------


def shown(page, starts=()):
    """Head and lines of the tables of a page, of all or of those whose first cell is one of `starts`."""
    found = re.findall(r"^(\|.*)\n\|[-| ]+\|\n((?:\|.*\n)+)", (ROOT / page).read_text(), flags=re.M)
    return [(head, body.splitlines()) for head, body in found if not starts or body.split(" | ")[0] in starts]


def quoted(study, sentence):
    """A sentence with the cells of a study's tables in place of `{line > column}`."""
    cells = {}
    for head, body in shown(f"studies/{study}/README.md"):
        for names, of in ([re.split(r" *\| *", text)[1:-1] for text in (head, line)] for line in body):
            for i, line in enumerate(accumulate(of, "{} | {}".format), 1):
                cells = {f"{line} > {name}": cell for name, cell in zip(names[i:], of[i:])} | cells

    def number(where):
        cell = cells[where[1]].removeprefix("never: ")
        return cell if where[1].endswith("found / true") else re.split(r"±| \(| / ", cell)[0]

    return re.sub(r"\{(.*?)\}", number, sentence)


@pytest.mark.parametrize("page", PAGES)
def test_tables_follow_from_the_rows(page):
    computed = tables()[page]
    there = shown(page, [lines[0].split(" | ")[0] for _, *lines in computed])
    assert [body for _, body in there] == [lines for _, *lines in computed]
    for (head, _), (numbers, *_) in zip(there, computed):
        assert not numbers or [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", head)] == numbers


@pytest.mark.parametrize("study", ANSWERS)
def test_an_answer_quotes_the_table_below_it(study):
    """The first table is computed; the answer above it has the sentences of `ANSWERS`, and no other number."""
    page = f"studies/{study}/README.md"
    assert shown(page)[0][1] == tables()[page][0][1:]
    answer = " ".join((ROOT / page).read_text().split("**Answer.**")[1].split("\n\n")[0].split())
    for sentence in ANSWERS[study]:
        assert quoted(study, sentence) in answer
        answer = answer.replace(quoted(study, sentence), "")
    assert not re.search(r"\d", answer)


@pytest.mark.parametrize(("page", "study", "sentence"), QUOTED)
def test_guides_quote_the_studies(page, study, sentence):
    assert quoted(study, sentence) in " ".join((ROOT / page).read_text().split())


def main():
    for page, computed in tables().items():
        text, starts = (ROOT / page).read_text(), [lines[0].split(" | ")[0] for _, *lines in computed]
        for (_, old), (_, *new) in zip(shown(page, starts), computed):
            text = text.replace(*("\n".join(["", *lines, ""]) for lines in (old, new)))
        (ROOT / page).write_text(text)


if __name__ == "__main__":
    main()
