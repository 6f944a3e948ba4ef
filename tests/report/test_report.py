"""What a report says, as its reader finds it on the page; every complaint is one sentence and leaves nothing behind."""

import copy
import csv
import errno
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from report_models import Page, bits, images, three_agents

import craftrl.report.contents as contents_module
import craftrl.report.states as states_module
from cli.gridworld import ExactModel, videos
from command_line import craftrl
from craftrl import (
    CRAFT,
    CoordinateOracle,
    CraftError,
    InvalidDataError,
    InvalidParameterError,
    NotFittedError,
    TrajectoryDataset,
)
from craftrl.diagnostics import Diagnosis
from craftrl.diagnostics.findings import findings_of_checks
from craftrl.diagnostics.mixtures import Mixture
from craftrl.diagnostics.sufficiency import Sufficiency
from craftrl.estimators.base import ByStep
from craftrl.estimators.verdict import verdict
from craftrl.paper import SingleObservation, sample_size
from craftrl.planning import StateGraph
from craftrl.report import write_report
from estimators.test_findings import more_bins_than_trajectories
from shipped import BOUNDS, ORACLES, data, fitted, network, rows_of


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    model, tau = bits()
    return Page(tmp_path_factory.mktemp("bits"), model, tau, n_resamples=2)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Without the data."""
    return Page(tmp_path_factory.mktemp("alone"), bits()[0])


# -- the verdict ---------------------------------------------------------------------------------------------------


def test_the_verdict_is_that_of_the_diagnosis(page):
    model, tau = bits()
    found = model.diagnose(tau, n_resamples=2)
    said = page.numbers["verdict"]
    assert said["level"] == found.verdict == "trust"
    assert "Trust The states hold up on data that they were not found from. CRAFT found" in page.text
    assert f"score of {found.score:.2f}" in said["why"]
    assert "refits on resampled trajectories (2) agree" in said["why"]
    assert "CRAFT found 1 state at step 1, 2 states at each of steps 2 to 5. It was given 1,000" in page.text
    assert not said["advice"]  # every move is made by many


def test_what_was_found_comes_first_then_what_to_do_then_the_numbers():
    """States that hold nearly all, one of which, with 30% of the observations, looks like two; hardly anything was held
    out."""
    model, tau = bits()
    found = Sufficiency(0.1, 1e-9, 0.97, 0.2, 40, (), 0.0, 0.99, (-1, 1.0), np.zeros(5, dtype=int))
    exact = model.diagnose(tau, n_resamples=0)
    frames = np.zeros((3, 8))
    two = (Mixture(None, 1, 0.3, (0.5, 0.5), (frames, frames)),)
    told = tuple(findings_of_checks(tau, exact.n_states, None, None, found, two))
    diagnosis = replace(exact, tests=None, sufficiency=found, mixtures=two, findings=told)
    assert diagnosis.trust == pytest.approx([0.7] * 5)
    said = verdict(model, diagnosis)
    assert said.level == "do not trust"
    assert (
        "For telling the agents apart, the state is as good as the whole observation (97%, give or take 40" in said.why
    )
    assert "states with 30% of the observations look like two" in said.why
    assert "reads 99.0% as the fit found them" in said.why
    assert "refits" not in said.why
    assert [finding.kind for finding in told] == ["looks like two", "hardly known"]
    assert said.warnings[0].startswith("State 1 looks like two")
    assert said.to_do[0].startswith("Record more trajectories that visit the states that look like two")


def test_without_data_nothing_is_trusted(alone):
    assert alone.numbers["verdict"]["level"] == "not checked"
    assert "What to do next Check the states with the data: model.diagnose(x)" in alone.text
    assert "<img" not in alone.html
    assert "entries" not in alone.numbers["tables"]
    assert "This report was made without the data" in alone.text
    assert "times as often by agent" in alone.text


def test_what_fit_warned_of_is_said_without_data(tmp_path):
    """Agents that act alike: `fit` warned, and a report without data says the same and trusts nothing."""
    rng = np.random.default_rng(0)
    x, agent = rng.integers(2, size=(400, 4, 6)), np.arange(400) % 2
    with pytest.warns(match="no better than chance") as warned:
        model = CRAFT(alpha=1.0, eta=0.2, nu=0.15).fit(x, agent)
    page = Page(tmp_path, model)
    said = page.numbers["verdict"]
    assert said["level"] == "do not trust"
    assert f"{said['warnings'][0]} {said['to_do'][0]}" in str(warned[0].message)
    assert "Check that the agents act differently" in said["to_do"][0]
    assert page.text.index(said["warnings"][0]) < page.text.index(said["to_do"][0]) < page.text.index(said["why"])
    given = Page(tmp_path, model, x, agent)
    assert given.numbers["verdict"]["level"] == "do not trust"
    assert "refits" not in given.text.partition("What this rests on")[0]  # they would not help


def test_the_theorem_stands_beside_the_number_given(alone, tmp_path):
    model, _ = bits()
    least = min(np.bincount(labels).min() for labels in model.labels_.T) / 1000
    bound = {"alpha": 1.0, "eta": 0.2, "nu": 0.15, "nu_prime": max(0.15, least)}
    asked = sample_size(epsilon_0=0.05, delta=0.05, H=5, class_size=16, N_s=2, **bound).total
    digits, power = f"{asked:.1e}".split("e+")
    assert (
        f"asks for {digits} × 10{power.translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))} trajectories" in alone.text
    )
    assert "theorem" not in Page(tmp_path, images()[0]).text


# -- states, moves, spectra ----------------------------------------------------------------------------------------


def test_moves_are_those_of_the_graph(page):
    model, tau = bits()
    graph = StateGraph.from_model(model, tau, min_share=0)
    rows = page.rows("transitions")
    assert sum(row["moves of agent 0"] + row["moves of agent 1"] for row in rows) == 1000 * 4
    for row in rows:
        s, t = graph.node(row["state"], row["h"]), graph.node(row["next state"], row["h"] + 1)
        assert row["moves of agent 1"] == graph.counts[1][s, t]
        assert row["share of agent 0"] == pytest.approx(graph.policy(0)[s, t])
    codes = model.transform(tau)
    for row in page.rows("visits"):
        assert row["visits of agent 0"] == (codes[tau.agent == 0, row["h"] - 1] == row["state"]).sum()
    assert page.html.count('class="node') == 3 * 9  # all agents, and each
    assert "state 0 at step 1: 1000 trajectories" in page.text


def test_where_the_agents_differ_most_comes_first(page):
    model, tau = bits()
    shares = [StateGraph.from_model(model, tau, min_share=0).policy(k).toarray() for k in (0, 1)]
    said = re.findall(r"In state (\d) at step (\d), agent 0 and agent 1 differ: (\d+)% of the moves", page.text)
    assert len(said) == 7  # each state that is left
    graph = StateGraph.from_model(model, tau, min_share=0)
    for state, step, percent in said:
        s = graph.node(int(state), int(step))
        assert round(50 * np.abs(shares[0][s] - shares[1][s]).sum()) == int(percent)
    visits = {
        (row["state"], row["h"]): row["visits of agent 0"] + row["visits of agent 1"] for row in page.rows("visits")
    }
    weight = [int(percent) * visits[int(state), int(step)] for state, step, percent in said]
    assert weight == sorted(weight, reverse=True) or np.diff(weight).max() < 500  # percents are rounded


def test_agents_that_move_alike_and_states_of_one_agent_are_no_difference(tmp_path):
    """At step 2 all go on alike from one state, and in the other there is bob alone."""
    s = np.zeros((400, 3), dtype=np.int64)
    s[:, 1], s[:, 2] = np.arange(400) >= 300, np.arange(400) % 2
    names = np.repeat(["ann", "bob"], 200)
    page = Page(tmp_path, fitted(CRAFT(alpha=0.5, eta=0.1, nu=0.05), s[..., None], names), s[..., None], names)
    assert "In state 0 at step 1, ann and bob differ: 50% of the moves" in page.text
    alike = re.findall(r"In state (\d) at step 2, ann and bob differ: 0% of the moves", page.text)
    alone = re.findall(r"In state (\d) at step 2 only one agent was seen", page.text)
    assert sorted(alike + alone) == ["0", "1"]


def test_the_entry_that_the_encoder_reads_decides_alone(page):
    model, _ = bits()
    for h in range(2, 6):
        rows = [row for row in page.rows("entries") if row["h"] == h]
        decides = {row["entry"]: row["decides"] for row in rows}
        assert [entry for entry, share in decides.items() if share > 0] == [model.encoders_[h].feature]
        mine = [row for row in rows if row["entry"] == model.encoders_[h].feature]
        assert sorted(row["mean"] for row in mine) == [0.0, 1.0]
        assert {row["deviation"] for row in mine} == {0.0}
    assert page.text.count("All 8 entries were swapped; 7 of them made no difference: ignored.") == 4


def test_entries_of_a_table_have_the_names_of_its_columns(tmp_path):
    model, tau = bits()
    named = copy.copy(model)
    named.data_ = {**model.data_, "reading": {"keys": [f"sensor {i}" for i in range(8)]}}
    assert f" sensor {model.encoders_[2].feature} " in Page(tmp_path, named, tau).text
    named.data_ = {**model.data_, "reading": {"keys": ["state"]}}  # one column of lists
    assert "sensor" not in Page(tmp_path, named, tau).text


def test_spectra_hold_every_pair(page):
    model, _ = bits()
    for step in model.trace_:
        assert sum(row["pairs"] for row in page.rows("spectra") if row["h"] == step.h) == step.spectra.sum()
    clusters = page.rows("clusters")
    assert len(clusters) == sum(len(step.clusters) for step in model.trace_)
    assert all(c["from"] <= c["mean log-odds"] <= c["to"] for c in clusters)
    assert page.html.count('class="threshold"') == sum(len(step.spectra) for step in model.trace_)
    assert page.html.count('class="shade') == len(clusters)


def test_what_does_not_fit_is_left_out_and_it_is_said(tmp_path, monkeypatch):
    model, tau = bits()
    monkeypatch.setattr(contents_module, "MAX_BARS", 1)
    monkeypatch.setattr(contents_module, "MAX_ROWS", 5)
    monkeypatch.setattr(states_module, "TRAJECTORIES", 48)
    page = Page(tmp_path, model, tau)
    assert "The spectra of 3 rarer states were left out" in page.text
    assert re.search(r"Of the 1\d rows of the table of transitions, 5 are in this file", page.text)
    assert "comes from 96 trajectories, taken from all over the data" in page.text
    kept = page.rows("transitions")
    assert sum(row["visits of agent 1"] for row in page.rows("visits") if row["h"] == 2) == 48
    assert min(row["moves of agent 0"] + row["moves of agent 1"] for row in kept) > 10  # those made often


def test_more_agents_are_compared_pair_by_pair_and_no_name_breaks_the_page(tmp_path):
    model, x, agent = three_agents()
    page = Page(tmp_path, model, x, agent, title="<i>mine</i>")
    assert page.numbers["agents"] == ["</script>", '<b>"A"', "B & co"]
    pairs = ['</script> against <b>"A"', "</script> against B & co"]
    for pair in pairs:
        assert sum(row["pairs"] for row in page.rows("spectra") if row["h"] == 1 and row["agents"] == pair) == 900
    assert sum(row["moves of B & co"] for row in page.rows("transitions") if row["h"] == 1) == 300
    assert "differ most: " in page.text
    assert "Report on <i>mine</i>" in page.text
    for tag in ("</script", "<script", "<b>", "<i>"):
        assert tag not in page.html


def test_states_shared_over_time_keep_the_encoders_names(tmp_path):
    model = fitted(CRAFT(alpha=1.0, eta=0.1, nu=0.1, stationary=True), *rows_of("bits"))
    page = Page(tmp_path, model, *rows_of("bits"))
    named = {row[name] for row in page.rows("clusters") for name in ("state", "next state")}
    assert {"0"} < named <= {str(s) for s in range(model.n_states_total_)}
    assert "h" not in page.rows("entries")[0]  # one table for all steps
    assert "In state 0, agent 0 and agent 1 differ" in page.text


def test_each_state_says_how_often_each_agent_is_in_it(tmp_path):
    model, tau = images()
    states = model.transform(tau)
    page = Page(tmp_path, model, tau)
    for state in np.unique(states):
        mine = [(states[tau.agent == k] == state).mean() for k in range(2)]
        first, second = (f"{share:.1%}" if 0 < share < 0.1 else f"{share:.0%}" for share in mine)
        assert f"({first} of agent 0's, {second} of agent 1's)" in page.text


def test_every_number_can_be_downloaded(page):
    assert set(page.files) == {"report.json", *(f"{name}.csv" for name in page.numbers["tables"])}
    for name, table in page.numbers["tables"].items():
        head, *rows = csv.reader(page.files[f"{name}.csv"].splitlines())
        assert head == table["columns"]
        assert len(rows) == len(table["rows"])


# -- pictures ------------------------------------------------------------------------------------------------------


def test_mean_frames_what_decides_and_what_is_ignored(tmp_path):
    model, tau = images()
    page = Page(tmp_path, model, tau)
    codes, frames = model.transform(tau), np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1)
    named = np.unique(codes).tolist()
    deviation = {s: frames[codes == s].std(axis=0).mean(axis=2) for s in named}
    for s in named:
        mine = frames[codes == s]
        (mean, decides), (ignored,) = (
            page.pictures(f"mean frame of state {s}"),
            page.pictures(f"where frames of state {s} "),
        )
        np.testing.assert_array_equal(mean, mine.mean(axis=0).round())
        assert decides.shape == mean.shape
        assert (decides[..., 0] > mean[..., 0] / 3 + 5).any()  # orange on what is dimmed
        np.testing.assert_allclose(
            ignored[..., 0], deviation[s] / max(d.max() for d in deviation.values()) * 255, atol=0.51
        )
        for example in page.pictures(f"a frame of state {s}"):
            assert (example == mine).all(axis=(1, 2, 3)).any()
    common = np.bincount(codes.ravel()).argmax()
    assert sorted(re.findall(rf"a frame of state {common}: agent (\d)", page.html)) == ["0", "0", "1", "1"]


def test_a_page_of_large_noisy_frames_stays_small(tmp_path, monkeypatch):
    """Noise is what PNG cannot make smaller; frames are thinned out, and the rarer states have no pictures."""
    model, _ = images()
    rng = np.random.default_rng(0)
    given = data("images").tau
    read = given.rows(np.arange(given.n))
    large = rng.integers(256, size=(*read.shape[:2], 300, 200, 3)).astype(np.uint8)
    tau = TrajectoryDataset.from_arrays([large[given.agent_slice(k)] for k in range(2)])
    states = dict(zip([x.tobytes() for x in large.reshape(-1, 300, 200, 3)], np.arange(large[:, :, 0, 0, 0].size) % 40))
    monkeypatch.setattr(type(model), "encode", lambda self, x, h=None: np.array([states[one.tobytes()] for one in x]))
    monkeypatch.setattr(states_module, "heat_of", lambda encoder, x: np.ones(x.shape[:3]))
    monkeypatch.setattr(type(model), "steps_fitted", lambda self, data: data)
    nothing = Diagnosis(np.array(list(model.n_states_)), np.ones(given.H))
    monkeypatch.setattr(type(model), "diagnose", lambda *_, **__: nothing)
    page = Page(tmp_path, model, tau)
    assert 1e6 < len(page.html) < 8e6
    assert "rarer states have no pictures" in page.text
    assert max(page.pictures("mean frame of state 0")[0].shape) <= 80


KINDS = ["functions of each step", "classifier", "network of vectors", "network of images"]  # the quick ones


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_oracle_can_be_reported_on(name, tmp_path):
    kind, oracle = ORACLES[name]
    model = fitted(CRAFT(oracle(), alpha=1.0, eta=0.1, nu=0.1), *rows_of(kind))
    page = Page(tmp_path, model, *rows_of(kind))
    assert bool(page.pictures("mean frame")) == (kind == "images")
    assert ("entries" in page.numbers["tables"]) == (kind != "images")
    assert len(page.rows("steps")) == data(kind).tau.H


def test_steps_without_a_state_are_reported_on(tmp_path):
    tau, model = more_bins_than_trajectories(2)
    page = Page(tmp_path, fitted(model, tau), tau)
    assert [row["states"] for row in page.rows("steps")][-2:] == [0, 0]
    assert "CRAFT found no state at h = 4-5" in page.text


# -- two states in one ---------------------------------------------------------------------------------------------


class Reader:
    """Reads the cell of a frame of nine without error; `fused` cells are one state."""

    def __init__(self, *fused):
        self.state_of = np.array([fused[0] if cell in fused else cell for cell in range(9)])

    def __call__(self, x):
        return self.state_of[ExactModel().encode(x)]


@cache
def of_walks():
    tau, _ = videos()
    return fitted(CRAFT(network(), **BOUNDS, stationary=True), tau), tau


def reading(*fused):
    """A model of walks on nine cells whose encoder reads them, and its data."""
    fit, tau = of_walks()
    model = copy.copy(fit)
    model.encoder_ = Reader(*fused)
    model.encoders_, model.n_states_total_ = ByStep([model.encoder_] * tau.H), 9
    model.labels_ = model.transform(tau)
    return model, tau


def test_a_state_that_fuses_two_places_is_named_and_both_are_shown_side_by_side(tmp_path):
    page = Page(tmp_path, *reading(2, 6))
    assert sum("State 2 looks like two" in text for text in page.numbers["verdict"]["warnings"]) == 1
    assert "This looks like two states" in page.text
    halves = [
        mean[..., 0].reshape(3, 2, 3, 2).sum(axis=(1, 3)).argmax() for mean in page.pictures("mean frame of one half")
    ]
    assert sorted(halves) == [2, 6]
    for cell in (2, 6):
        drawn = [x[2 * (cell // 3), 2 * (cell % 3), 0] for x in page.pictures("a frame of one half of state 2")]
        assert sorted(drawn) == [0] * 3 + [200] * 3  # three frames of each


def test_noise_alone_makes_no_state_look_like_two(tmp_path):
    page = Page(tmp_path, *reading())
    assert not any("looks like two" in text for text in page.numbers["verdict"]["warnings"])
    assert "This looks like two states" not in page.text


# -- in a notebook -------------------------------------------------------------------------------------------------


def test_a_fitted_model_shows_itself_in_a_notebook():
    model, _ = bits()
    shown = model._repr_mimebundle_()["text/html"]
    assert shown == model._repr_html_()
    assert len(shown) < 5000
    for text in ("Not checked", "CRAFT found 1 state at step 1, 2 states", "CoordinateOracle", "<td>2</td><td>2</td>"):
        assert text in shown
    assert "sk-" in CRAFT()._repr_html_()  # before it is fitted, as scikit-learn shows it
    stationary, _ = images()
    assert "Do not trust" in stationary._repr_html_()
    assert "What to do next" in stationary._repr_html_()
    assert "<td>0</td>" in stationary._repr_html_()


# -- the file --------------------------------------------------------------------------------------------------------


def test_a_page_needs_nothing_beside_it_and_says_no_paths(tmp_path):
    """Its name is the model's; where refits were left out, they are the next thing to do."""
    model, tau = bits()
    model.save(tmp_path / "model")
    tau.save(tmp_path / "data")
    out = craftrl("report model data --diagnose 0 --out page.html", cwd=tmp_path)
    assert out == "Written to page.html\n"
    page = Page(tmp_path, model, tau, title="model")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html  # the same model and data say the same
    assert page.html.startswith("<!DOCTYPE html>")
    assert "Report on model" in page.text
    assert len(page.html) < 300_000
    assert not re.search(r'(src|href)="(?!data:|#)', page.html)
    assert str(tmp_path) not in page.html
    assert page.numbers["verdict"]["level"] == "check"
    assert page.numbers["verdict"]["to_do"][0].startswith("Let refits say whether other data gives the same states")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "model", "page.html"]


def other(tau):
    """One bit is another one."""
    x = tau.rows(np.arange(tau.n)).copy()
    x[0, 0] ^= 1
    return TrajectoryDataset.from_arrays([x[tau.agent_slice(k)] for k in range(tau.K)])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda to: write_report(bits()[0], to, other(bits()[1])),
            "must be that which the model was fitted to .*fing",
        ),
        (lambda to: write_report(bits()[0], to, bits()[1].select(np.arange(10, 990))), "1000 trajectories of 5 steps"),
        (
            lambda to: write_report(SingleObservation(CoordinateOracle()), to),
            "model must be a fitted CRAFT model; Sin",
        ),
        (lambda to: write_report(CRAFT(), to), "must be fitted first"),
        (lambda to: write_report(bits()[0], to.with_suffix(".pdf")), "NAME.html or NAME.htm; .*a.pdf was given"),
        (lambda to: (to.write_text("mine"), write_report(bits()[0], to)), "overwrite=True"),
    ],
)
def test_a_refusal_leaves_nothing(tmp_path, call, sentence):
    with pytest.raises((InvalidDataError, InvalidParameterError, NotFittedError), match=sentence):
        call(tmp_path / "a.html")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"] * ("overwrite" in sentence)


def test_a_full_disk_leaves_the_old_report(tmp_path, monkeypatch):
    def full(path, text, **_):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "a.html").write_text("mine")
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(CraftError, match="There must be room for the report"):
        write_report(bits()[0], tmp_path / "a.html", overwrite=True)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"mine"]
