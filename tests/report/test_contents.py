"""What a report says, by numbers: no page is made here."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from report_models import bits, images, three_agents

from craftrl import CRAFT, CoordinateOracle, InvalidDataError, InvalidParameterError, NotFittedError, TrajectoryDataset
from craftrl.diagnostics.findings import of_checks
from craftrl.diagnostics.sufficiency import Sufficiency
from craftrl.paper import SingleObservation, sample_size
from craftrl.planning import StateGraph
from craftrl.report import sample as sampling
from craftrl.report import spectra as spectra_module
from craftrl.report.checks import steps
from craftrl.report.contents import contents
from craftrl.report.guarantee import guarantee
from craftrl.report.names import agent_names
from craftrl.report.pictures import LONGEST, over, png, small, to_bytes
from craftrl.report.portraits import examples_of, groups
from craftrl.report.sample import Sample, the_data_fitted
from craftrl.report.tables import Table, plain, power_of_ten, shown
from craftrl.report.verdict import verdict
from shipped import ORACLES, data, fitted, rows_of


@pytest.fixture(scope="module")
def told():
    model, tau = bits()
    return contents(model, tau, n_resamples=2)


def records(table):
    return [dict(zip(table.columns, row)) for row in table.rows]


# -- the verdict ---------------------------------------------------------------------------------------------------


def test_the_verdict_is_that_of_the_diagnosis(told):
    model, tau = bits()
    found = model.diagnose(tau, n_resamples=2)
    assert told.verdict.level == found.verdict == "trust"
    assert f"score of {found.score:.2f}" in told.verdict.why
    assert "refits on resampled trajectories (2) agree" in told.verdict.why
    assert told.verdict.found.startswith("CRAFT found 1 state at step 1, 2 states at each of steps 2 to 5.")
    assert "1,000 trajectories of 2 agents" in told.verdict.found


def test_what_a_network_s_log_odds_say_is_told_in_words():
    """States that hold nearly all, one of which looks like two; hardly anything was held out."""
    model, tau = bits()
    found = Sufficiency(
        told=0.1,
        p_told=1e-9,
        share=0.97,
        error=0.2,
        n_unseen=40,
        closed=np.array([1.0, 0.91, 1.0]),
        p_value=np.array([1.0, 1e-9, 1.0]),
        two=(1,),
        one=(),
        doubtful=0.3,
        read=0.99,
        misread=(-1, 1.0),
        before=np.zeros(5, dtype=int),
    )
    exact = model.diagnose(tau, n_resamples=0)
    told = tuple(of_checks(tau, exact.n_states, None, None, found))
    diagnosis = replace(exact, tests=None, sufficiency=found, findings=told)
    assert diagnosis.trust == pytest.approx([0.7] * 5)
    assert diagnosis.verdict == "do not trust"
    said = verdict(model, diagnosis, guarantee(model))
    assert "the states are as good as whole observations (97%, give or take 40)" in said.why
    assert "states hold 91% of what observations foretell of moves and agents" in said.why
    assert "99.0% are read as the state that `fit` found" in said.why
    assert "refits" not in said.why
    assert [finding.kind for finding in told] == ["hardly known", "halves differ", "looks like two"]
    assert said.warnings == tuple(map(str, told))
    assert said.warnings[2].startswith("State 1 looks like two")
    assert steps(model, diagnosis).rows[3][-2] == 0.7


def test_without_data_nothing_is_trusted():
    model, _ = bits()
    said = contents(model)
    assert said.verdict.level == "not checked"
    assert said.gallery is None
    assert said.entries is None
    assert said.moves_of == ("all agents",)
    assert any("without the data" in note for note in said.notes)


def test_what_fit_warned_of_is_told_without_data():
    """Agents that act alike: `fit` warned, and a report without data says the same and trusts nothing."""
    rng = np.random.default_rng(0)
    x, agent = rng.integers(2, size=(400, 4, 6)), np.arange(400) % 2
    with pytest.warns(match="no better than chance") as warned:
        model = CRAFT(alpha=1.0, eta=0.2, nu=0.15).fit(x, agent)
    said = contents(model).verdict
    assert said.level == "do not trust"
    assert " ".join(said.warnings) == str(warned[0].message)
    assert "Check that the agents act differently" in said.warnings[0]
    assert contents(model, x, agent, n_resamples=0).verdict.level == "do not trust"


def test_a_move_is_named_where_hardly_anybody_makes_it(told):
    """Of 1,000 trajectories every move of `bits` is made by many: no advice. Of 20 it is not."""
    assert not told.verdict.advice
    rng = np.random.default_rng(0)
    s = np.cumsum(rng.random((60, 3)) < np.repeat([0.1, 0.6], 30)[:, None], axis=1) % 2
    rare = fitted(CRAFT(alpha=1.0, eta=0.1, nu=0.1), s[..., None], np.repeat([0, 1], 30)).trace_.findings
    assert any(finding.kind == "rare move" and finding.severity == "note" for finding in rare)


def test_the_theorem_stands_beside_the_number_given():
    model, _ = bits()
    least = min(np.bincount(labels).min() for labels in model.labels_.T) / 1000
    bound = {"alpha": 1.0, "eta": 0.2, "nu": 0.15, "nu_prime": max(0.15, least)}
    asked = sample_size(epsilon_0=0.05, delta=0.05, H=5, class_size=16, N_s=2, **bound).total
    assert guarantee(model).asked == asked
    assert power_of_ten(asked) in contents(model).verdict.theorem
    network, _ = images()
    assert guarantee(network).asked is None
    assert "finite class" in guarantee(network).why


# -- states, moves, spectra ----------------------------------------------------------------------------------------


def test_moves_are_those_of_the_graph(told):
    model, tau = bits()
    graph = StateGraph.from_model(model, tau, min_share=0)
    rows = records(told.tables["transitions"])
    assert sum(row["moves of agent 0"] + row["moves of agent 1"] for row in rows) == 1000 * 4
    for row in rows:
        s, t = graph.node(row["state"], row["h"]), graph.node(row["next state"], row["h"] + 1)
        assert row["moves of agent 1"] == graph.counts[1][s, t]
        assert row["share of agent 0"] == graph.policy(0)[s, t]
    codes = model.transform(tau)
    for row in records(told.tables["visits"]):
        assert row["visits of agent 0"] == (codes[tau.agent == 0, row["h"] - 1] == row["state"]).sum()


def test_the_entry_that_the_encoder_reads_decides_alone(told):
    model, _ = bits()
    rows = records(told.tables["entries"])
    for h in range(2, 6):
        decides = {row["entry"]: row["decides"] for row in rows if row["h"] == h}
        assert [entry for entry, share in decides.items() if share > 0] == [model.encoders_[h].feature]
        assert told.entries.ignored[h] == (7, 8, 8)
        mine = [row for row in rows if row["h"] == h and row["entry"] == model.encoders_[h].feature]
        assert sorted(row["mean"] for row in mine) == [0.0, 1.0]
        assert {row["deviation"] for row in mine} == {0.0}


def test_spectra_hold_every_pair(told):
    model, _ = bits()
    rows = records(told.tables["spectra"])
    for step in model.trace_:
        assert sum(row["pairs"] for row in rows if row["h"] == step.h) == step.spectra.sum()
    clusters = records(told.tables["clusters"])
    assert len(clusters) == sum(len(step.clusters) for step in model.trace_)
    assert all(c["from"] <= c["mean log-odds"] <= c["to"] for c in clusters)
    assert told.scan
    assert told.thresholds == tuple(step.threshold for step in model.trace_)


def test_large_spectra_are_cut_and_it_is_said(monkeypatch):
    model, _ = bits()
    monkeypatch.setattr(spectra_module, "MOST_BARS", 1)
    said = contents(model)
    assert {row["h"]: row["state"] for row in records(said.tables["spectra"])}.keys() == {1, 2, 3, 4}
    assert any("spectra of 3 rarer states" in note for note in said.notes)


def test_more_agents_are_compared_pair_by_pair():
    model, x, agent = three_agents()
    said = contents(model, x, agent, n_resamples=0)
    assert said.agents == agent_names(model) == ("</script>", '<b>"A"', "B & co")
    assert said.pairs == ('</script> against <b>"A"', "</script> against B & co")
    rows = records(said.tables["spectra"])
    for pair in said.pairs:
        assert sum(row["pairs"] for row in rows if row["h"] == 1 and row["agents"] == pair) == 900
    moves = records(said.tables["transitions"])
    right = sum(row["moves of B & co"] for row in moves if row["h"] == 1)
    assert right == 300


def test_a_sample_is_taken_from_all_over_the_data(monkeypatch):
    model, tau = bits()
    monkeypatch.setattr(sampling, "RUNS", 3)
    monkeypatch.setattr(sampling, "RUN", 16)
    some = Sample.of(model, tau)
    assert not some.whole
    assert np.bincount(some.agent).tolist() == [48, 48]
    rows = np.concatenate([np.arange(*run) for run in some.runs])
    assert (rows[0], rows[-1]) == (0, 999)
    np.testing.assert_array_equal(some.codes, model.transform(tau)[rows])
    np.testing.assert_array_equal(some.one(3, 50), tau.at(3)[rows[50]])
    np.testing.assert_array_equal(np.concatenate([x for _, x in some.at(2)]), tau.at(2)[rows])
    assert any("96 of the 1,000" in note for note in contents(model, tau, n_resamples=0).notes)


def test_states_shared_over_time_keep_the_encoders_names():
    world = "bits"
    model = fitted(CRAFT(alpha=1.0, eta=0.1, nu=0.1, stationary=True), *rows_of(world))
    said = contents(model, *rows_of(world), n_resamples=0)
    assert said.stationary
    clusters = records(said.tables["clusters"])
    shown = {row[name] for row in clusters for name in ("state", "next state")}
    assert {"0"} < shown <= {str(s) for s in range(model.n_states_total_)}
    assert {row["h"] for row in records(said.tables["entries"])} <= {None}


# -- pictures ------------------------------------------------------------------------------------------------------


def picture_of(source):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))))


def test_pictures_are_what_they_are_of():
    image = np.random.default_rng(0).integers(256, size=(5, 7, 3)).astype(np.uint8)
    np.testing.assert_array_equal(picture_of(png(image)), image)
    assert max(small(np.empty((300, 90, 3))).shape[:2]) <= LONGEST
    np.testing.assert_array_equal(to_bytes(np.array([[[0.0], [1.0]]]), 0, 1)[0, :, 0], [0, 255])
    np.testing.assert_array_equal(over(np.full((1, 2, 3), 90, np.uint8), np.array([[0.0, 1.0]]))[0, :, 0], [30, 255])


def test_mean_frames_and_what_is_ignored():
    model, tau = images()
    said = contents(model, tau, n_resamples=0)
    codes, frames = model.transform(tau), np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1)
    assert said.gallery.decides
    assert [p.group.state for p in said.gallery.portraits] == np.unique(codes).tolist()
    spread = max(frames[codes == s].std(axis=0).max() for s in np.unique(codes))
    for portrait in said.gallery.portraits:
        mine = frames[codes == portrait.group.state]
        assert portrait.group.visits == len(mine)
        mean, decides, ignored = (picture_of(p.source) for p in portrait.pictures)
        np.testing.assert_array_equal(mean, mine.mean(axis=0).round())
        assert decides.shape == mean.shape
        np.testing.assert_allclose(ignored[..., 0], mine.std(axis=0).mean(axis=2) / spread * 255, atol=0.51)
        for example in portrait.examples:
            assert (picture_of(example.source) == mine).all(axis=(1, 2, 3)).any()


def test_examples_take_turns_between_agents():
    model, tau = images()
    seen = Sample.of(model, tau)
    commonest = max(groups(model, seen), key=lambda group: min(group.by_agent))
    drawn = list(examples_of(seen, commonest, 4))
    assert sorted(k for k, _, _ in drawn) == [0, 0, 1, 1]
    assert all(model.encode(x[None], h)[0] == commonest.state for _, h, x in drawn)


# -- every oracle, bad input, and cells ----------------------------------------------------------------------------


KINDS = ["functions of each step", "classifier", "network of vectors", "network of images"]  # the quick ones


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_oracle_can_be_reported_on(name):
    kind, oracle = ORACLES[name]
    model = fitted(CRAFT(oracle(), alpha=1.0, eta=0.1, nu=0.1), *rows_of(kind))
    said = contents(model, *rows_of(kind), n_resamples=0)
    assert (said.gallery is not None) == (kind == "images")
    assert (said.entries is not None) == (kind != "images")
    assert len(said.tables["steps"].rows) == data(kind).tau.H


def test_other_data_is_refused():
    model, tau = bits()
    x = tau.rows(np.arange(tau.n)).copy()
    x[0, 0] ^= 1
    other = TrajectoryDataset.from_arrays([x[tau.agent_slice(k)] for k in range(tau.K)])
    with pytest.raises(InvalidDataError, match=r"must be that which the model was fitted to .*fingerprint"):
        the_data_fitted(model, other)
    with pytest.raises(InvalidDataError, match="1000 trajectories of 5 steps"):
        contents(model, tau.select(np.arange(10, 990)))
    older = fitted(CRAFT(alpha=1.0, eta=0.1, nu=0.1), *rows_of("bits"))
    del older.data_
    assert any("older version" in note for note in contents(older, *rows_of("bits"), n_resamples=0).notes)


def test_only_fitted_models_of_craft():
    with pytest.raises(InvalidParameterError, match="SingleObservation was given"):
        contents(SingleObservation(CoordinateOracle()))
    with pytest.raises(NotFittedError):
        contents(CRAFT())


def test_the_same_model_and_data_say_the_same():
    model, tau = images()
    first, second = (contents(model, tau, n_resamples=0) for _ in range(2))
    assert first == second


def test_cells():
    assert [shown(v) for v in (None, 1234567, 0.25, 2e-8, "a", 1234.5678)] == [
        "–",
        "1,234,567",
        "0.25",
        "2e-08",
        "a",
        "1,235",
    ]
    assert [plain(v) for v in (np.int64(3), np.nan, np.float32(0.5), None)] == [3, None, 0.5, None]
    assert power_of_ten(5.6e16) == "5.6 × 10¹⁶"
    rows = Table("t", "", ("a",), ((1,), (2,), (3,)))
    assert (rows.cut(2).rows, rows.cut(2, [1, 0, 2]).rows, rows.cut(3)) == (((1,), (2,)), ((1,), (3,)), rows)
    assert Table("t", "", ("a", "b"), ((1, None), (2, None))).filled() == Table("t", "", ("a",), ((1,), (2,)))
