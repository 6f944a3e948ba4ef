"""Everything that a report says, as numbers, sentences and pictures: no HTML, and nothing is computed after this."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from craftrl._version import __version__
from craftrl.errors import InvalidParameterError
from craftrl.estimators.choices import describe
from craftrl.estimators.craft import CRAFT
from craftrl.report.checks import assumptions, steps
from craftrl.report.entries import Entries, entries
from craftrl.report.flow import Labelled, transitions, visits
from craftrl.report.frames import Gallery, gallery
from craftrl.report.guarantee import Guarantee, guarantee
from craftrl.report.names import agent_names, pairs_of_agents
from craftrl.report.pictures import is_image
from craftrl.report.sample import Sample, the_data_fitted
from craftrl.report.spectra import clusters, comparisons, kept_predecessors, spectra
from craftrl.report.tables import Table, power_of_ten
from craftrl.report.verdict import Verdict, verdict

__all__ = ["Contents", "contents"]

MOST_ROWS = 20_000  # of a table
MOST_MERGES = 8  # of states, whose costs are told


@dataclass(frozen=True)
class Contents:
    """What a report says.

    title       what the model is called
    made_by     the version of the library
    verdict     what a reader should know first
    agents      their names; `moves_of` are those whose moves were counted, ("all agents",) without data
    pairs       which agents each axis of the spectra compares
    thresholds  for each h, how many pairs make a bin heavy (Line 19)
    bin_width   distance of neighbouring log-odds
    scan        whether clusters were found by the paper's scan, for which thresholds count
    stationary  whether one encoder serves all steps, so that a state's number means the same at all of them
    tables      every number, by name
    gallery     states in pictures, for images with data
    entries     states by entries of the observation, for other data
    choices     what the library chose and why
    facts       what the model was fitted to and with, as (what, value)
    notes       what was left out or could not be said, and why
    """

    title: str
    made_by: str
    verdict: Verdict
    agents: tuple[str, ...]
    moves_of: tuple[str, ...]
    pairs: tuple[str, ...]
    thresholds: tuple[float, ...]
    bin_width: float
    scan: bool
    stationary: bool
    tables: dict[str, Table]
    gallery: Gallery | None
    entries: Entries | None
    choices: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def contents(
    model: CRAFT, x: Any = None, agent: Any = None, *, title: str = "CRAFT model", n_resamples: int | None = None
) -> Contents:
    """All that a model says, and all that its data says of it; see `craftrl.report.write_report`."""
    if not isinstance(model, CRAFT):
        raise InvalidParameterError(
            f"A report needs a model of class CRAFT; {type(model).__name__} was given; fit one with craftrl fit."
        )
    model._check_fitted()
    sample, diagnosis = None, None
    if x is not None:
        sample = Sample.of(model, the_data_fitted(model, x, agent))
        diagnosis = model.diagnose(x, agent, n_resamples=n_resamples)
    labelled = Labelled.of(model, sample)
    theorem = guarantee(model)
    kept = kept_predecessors(model)
    pictures, described = _states(model, sample)
    tables = [steps(model, diagnosis), assumptions(model, sample), transitions(labelled), visits(labelled)]
    tables += [spectra(model, kept), clusters(model, kept), comparisons(model)]
    tables += [] if described is None else [described.table]
    return Contents(
        title=title,
        made_by=f"craftrl {__version__}",
        verdict=verdict(model, diagnosis, theorem),
        agents=agent_names(model),
        moves_of=labelled.who,
        pairs=tuple(pairs_of_agents(model)),
        thresholds=tuple(float(step.threshold) for step in model.trace_),
        bin_width=float(model.trace_.grid.xi),
        scan=any(step.threshold > 0 for step in model.trace_),
        stationary=hasattr(model, "encoder_"),
        tables={table.name: table.cut(MOST_ROWS, _weight(table)) for table in tables},
        gallery=pictures,
        entries=described,
        choices=tuple(describe(model.choices_)),
        facts=tuple(_facts(model, theorem)),
        notes=(*_notes(model, sample, pictures, described), *_left_out(model, kept, tables)),
    )


def _states(model: CRAFT, sample: Sample | None) -> tuple[Gallery | None, Entries | None]:
    if sample is None:
        return None, None
    if is_image(model.obs_shape_):
        return gallery(model, sample), None
    return None, entries(model, sample)


def _facts(model: CRAFT, theorem: Guarantee) -> Iterator[tuple[str, str]]:
    yield "Oracle (what learned)", repr(model.oracle_)
    yield "Encoders", "one for all steps" if hasattr(model, "encoder_") else "one for each step"
    if merges := getattr(model, "merges_", ()):
        costs = [f"{int(state_of.max()) + 1} for {nats:.0f} nats" for state_of, nats in merges[:MOST_MERGES]]
        yield "What fewer states would cost", ", ".join(costs)
    known = getattr(model, "data_", None)
    if known is not None:
        counts = ", ".join(f"{name}: {n:,}" for name, n in zip(agent_names(model), known["trajectories"]))
        yield "Trajectories of each agent", counts
        shape = " × ".join(map(str, known["observation"]))
        yield "Observations", f"{known['steps']} steps, each {shape} of type {known['dtype']}"
        yield "Fingerprint of the data", known["fingerprint"]
    else:
        n, H = model.sizes_fitted()
        yield "Trajectories", f"{n:,} of {H} steps"
    for name, value in vars(model.bounds_).items():
        yield f"Bound {name}", f"{value:.4g}"
    asked = f"{power_of_ten(theorem.asked)} trajectories" if theorem.asked is not None else f"none: {theorem.why}"
    yield "Sample size of Theorem 3.1", asked
    for use in model.trace_.oracle_use:
        yield f"Questions of {use.question}", f"{use.asked:,}, {use.seconds:.2g} s"


def _notes(model: CRAFT, sample: Sample | None, pictures: Gallery | None, described: Entries | None) -> Iterator[str]:
    if sample is None:
        yield (
            "This report was made without the data. With it (craftrl report MODEL DATA) it also shows what each state "
            "looks like, how each agent moves, and a diagnosis."
        )
    elif not sample.whole:
        yield (
            f"What is said of states and moves comes from {len(sample.agent):,} of the {sample.tau.n:,} trajectories, "
            "taken from all over the data."
        )
    if sample is not None and getattr(model, "data_", None) is None:
        yield "The model is of an older version and does not say what it was fitted to; sizes alone were compared."
    left_out = (pictures or described).left_out if pictures or described else 0  # type: ignore[union-attr]
    if left_out:
        yield f"{left_out:,} rarer states are not shown, so that the file stays small."
    if pictures is not None and not pictures.decides:
        yield "The encoders are no networks, so that the pixels that decide are not known."


def _left_out(model: CRAFT, kept: dict[int, list[int]], tables: list[Table]) -> Iterator[str]:
    """What there was no room for."""
    rarer = sum(len(step.spectra) - len(kept[step.h]) for step in model.trace_)
    if rarer:
        yield f"The spectra of {rarer:,} rarer states were left out, so that the file stays small."
    for table in tables:
        if len(table.rows) > MOST_ROWS:
            yield f"Of the {len(table.rows):,} rows of the table of {table.name}, {MOST_ROWS:,} are in this file."


def _weight(table: Table) -> list[float] | None:
    """Which rows matter most where there is no room for all: moves that are made often."""
    counts = [i for i, heading in enumerate(table.columns) if heading.startswith("moves of ")]
    return [sum(row[i] for i in counts) for row in table.rows] if counts else None
