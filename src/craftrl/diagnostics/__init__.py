"""Health checks of a fitted model that need no ground truth.

Two things can be wrong with learned states. They may be chance: other data would have given others. Resampling shows
that (`resamples`). Or they may be wrong for good, because an assumption fails: then something in the observations
tells the agents apart beyond the states (`residual`), or where the states do not (`resamples`, the held-out
loss), or the states name the agent better than they should (`shares`). What `fit` itself met on the way is in its
trace (`gaps`, and the share still assigned). Networks are not trained again: their own log-odds are asked whether the
states hold what they know (`sufficiency`).

Before anything is fitted, `compare_agents` says which agents' data differ enough to be compared (`agent_pairs`).

How well each of these predicts true accuracy is measured in docs/diagnostics.md.
"""

from craftrl.diagnostics.agent_pairs import AgentPairs, compare_agents
from craftrl.diagnostics.checks import diagnose
from craftrl.diagnostics.closure import Closure, closure_test
from craftrl.diagnostics.diagnosis import Diagnosis
from craftrl.diagnostics.gaps import cluster_gaps
from craftrl.diagnostics.resamples import Resamples, resample
from craftrl.diagnostics.residual import Residual, residual_information
from craftrl.diagnostics.shares import AgentShares, agent_shares
from craftrl.diagnostics.subject import Subject
from craftrl.diagnostics.sufficiency import Sufficiency, sufficiency

__all__ = [
    "AgentPairs",
    "AgentShares",
    "Closure",
    "Diagnosis",
    "Resamples",
    "Residual",
    "Subject",
    "Sufficiency",
    "agent_shares",
    "closure_test",
    "cluster_gaps",
    "compare_agents",
    "diagnose",
    "resample",
    "residual_information",
    "sufficiency",
]
