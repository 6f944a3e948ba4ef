"""Public names that callers neither call nor build, and why."""

from __future__ import annotations

__all__ = ["INNER", "RECORDS"]

_MADE = "a record that the library makes and hands out"
_EXTENDED = "for those who write an oracle; craftrl.testing checks what they write"
RECORDS: dict[str, str] = {
    **dict.fromkeys(
        [
            "craftrl.oracles.Choice",
            "craftrl.paper.Assumptions",
            "craftrl.diagnostics.AgentPairs",
            "craftrl.diagnostics.Diagnosis",
            "craftrl.diagnostics.Finding",
            "craftrl.envs.Collection",
            "craftrl.envs.GroundTruth",
            "craftrl.TrajectoryDataset",
            "craftrl.importing.Inspection",
            "craftrl.planning.Episode",
            "craftrl.planning.Exploration",
            "craftrl.planning.Plan",
            "craftrl.planning.Agreement",
            "craftrl.planning.Condition",
            "craftrl.planning.LatentActions",
            "craftrl.planning.StateGraph",
        ],
        _MADE,
    ),
    **dict.fromkeys(["craftrl.core.grid.Grid"], "Grid.from_bounds makes it"),
    **dict.fromkeys(["craftrl.oracles.EncoderFit", "craftrl.oracles.LogOdds"], _EXTENDED),
}

# Methods that the library asks of objects, and callers do not, by name.
INNER: dict[str, str] = {
    "saved": "asked by save",
    "restored": "asked by load",
    "same_value": "asked by ==",
    "steps_fitted": "asked by diagnose and the report",
    "refits": "asked by diagnose",
    "sizes": "asked by prepare",
    "encoder": "asked by fit",
    "pack": "asked by fit",
    "hold_out": "asked while networks train",
    "evaluate": "asked by fit",
    "like": "asked by select, fit and whoever cuts a dataset, which check what they are given",
    "probabilities": "asked by collect, which checks what every policy says",
    **dict.fromkeys(["but", "precision", "rng", "told", "to_device"], "asked while networks train"),
}
