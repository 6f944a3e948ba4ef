"""Health checks of a fitted model that need no ground truth.

Two things can be wrong with learned states. They may be chance: other data would have given others. Refits show that
(`stability`). Or they may be wrong for good, because an assumption fails: then something in the observations tells of
the agents or of the moves beyond the states (`tests`). Networks are not trained again: their own log-odds are asked
whether the states hold what they know (`sufficiency`). What is found is one record, `Finding`, with one sentence for
each kind; `fit` fills `trace_.findings` and warns from it, `diagnose` adds to it (`findings`, `diagnosis`).

Before anything is fitted, `compare_agents` says which agents' data differ enough to be compared (`agents`).

How well each of these predicts true accuracy is measured in docs/is-it-right.md.
"""

from craftrl.core.findings import Finding
from craftrl.diagnostics.agents import AgentPairs, compare_agents
from craftrl.diagnostics.diagnosis import Diagnosis

__all__ = ["AgentPairs", "Diagnosis", "Finding", "compare_agents"]
