"""Health checks of a fitted model that need no ground truth.

Learned states can be wrong in two ways. They may be chance: other data would have given others. Refits show that
(`stability`). Or an assumption fails, and more data does not help: then observations predict the agents or the moves
better than the states do. Finite classes test that with all their functions (`state_tests`), networks with the log-odds
that they have learned, without another training (`sufficiency`). `camera` asks whether agents were recorded alike,
`mixtures` whether a state is two. What is found is a list of `Finding`s, with one sentence for each kind: `fit` fills
`trace_.findings` and warns from it, `diagnose` adds to it (`findings`, `diagnosis`).

Before anything is fitted, `compare_agents` says which agents' data differ enough to be compared (`agents`).

How well each of these predicts true accuracy is measured in docs/is-it-right.md.
"""

from craftrl.core.findings import Finding
from craftrl.diagnostics.agents import AgentPairs, compare_agents
from craftrl.diagnostics.diagnosis import Diagnosis

__all__ = ["AgentPairs", "Diagnosis", "Finding", "compare_agents"]
