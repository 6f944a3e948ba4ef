"""The agents study: its kinds of agents, and its command on a tiny sweep."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from craftrl.cli import main
from craftrl.envs import BitsExBMDP
from craftrl.paper import population_assumptions
from studies.agents.report import cells, format_cells
from studies.agents.run import agents_of, run_one
from studies.agents.spec import AGENTS, FULL_TOTALS, KINDS, Run, sweep

# A failed assumption is a result here.
pytestmark = pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")

ROOT = Path(__file__).parents[2]
WORLD = BitsExBMDP(6, 4)


@pytest.mark.parametrize("kind", ["extreme", "middle"])
@pytest.mark.parametrize("n_agents", AGENTS)
def test_persistent_agents_have_the_papers_alpha_however_many(kind: str, n_agents: int) -> None:
    agents = agents_of(kind, WORLD, n_agents)
    assert population_assumptions(WORLD, agents).alpha.value == pytest.approx(math.log(3))


def test_a_reference_in_the_middle_is_half_of_alpha_from_everybody() -> None:
    stays = [agent.pi(2)[0, 0] for agent in agents_of("middle", WORLD, 3)]
    log_odds = np.log(stays) - np.log1p(-np.array(stays))
    assert np.abs(log_odds - log_odds[0]).max() == pytest.approx(math.log(3) / 2)


def test_two_agents_fail_and_three_succeed_on_as_many_trajectories() -> None:
    two, three = (run_one(Run("turns", k, 4800, "chain", 1.0, 0, 8, 8)) for k in (2, 3))
    assert two["accuracy"] < 0.95
    assert two["state_worst"] < 0.8
    assert three["accuracy"] == three["state_mean"] == three["state_worst"] == 1.0
    assert two["alpha"] == three["alpha"]


def test_six_agents_with_half_of_alpha_need_no_more_than_a_moment() -> None:
    assert run_one(Run("extreme", 6, 2400, "chain", 0.5, 0, 4, 4))["right_counts"] == 1.0


def test_automatic_bounds_mend_a_reference_in_the_middle() -> None:
    given, chosen = (run_one(Run("middle", 3, 4800, "chain", factor, 7, 8, 8)) for factor in (1.0, "auto"))
    assert given["alpha"] == pytest.approx(math.log(3))
    assert given["accuracy"] < 0.95
    assert chosen["accuracy"] == 1.0


def test_a_sweep_names_every_run_once() -> None:
    runs = sweep(FULL_TOTALS, 2)
    assert {run.n_agents for run in runs if run.factor == "auto"} == {3}
    assert len(set(runs)) == len(runs)
    assert {run.kind for run in runs} == set(KINDS)


def test_the_command_prints_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from studies.agents import spec

    monkeypatch.setattr(spec, "TOTALS", (300,))
    monkeypatch.setattr(spec, "sweep", lambda totals, seeds: sweep(totals, seeds, (2, 3), 4, 4))
    main(["reproduce", "agents", "--seeds", "2", "--quiet", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "300 in all, chain" in printed
    assert "chance: a random feature: " in printed
    assert "worst state of a run" in printed
    assert len(json.loads((tmp_path / "table.json").read_text())["cells"]) == 3 * 2 * 2
    assert (tmp_path / "agents.png").stat().st_size > 10_000
    assert (
        format_cells(cells([json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]))
        in printed
    )


GRIDS = {"least": "extreme", "middle": "middle", r"$\alpha$": "1.0", r"$\alpha/2$": "0.5", '`"auto"`': "auto"}
