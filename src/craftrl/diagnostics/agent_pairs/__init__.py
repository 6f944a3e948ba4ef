"""Which agents to compare? What their data says before anything is learned.

CRAFT needs agents that are in the same places and move differently there, and enough of both (Equations 4 and 5 of the
paper: eta, alpha and nu). None of the three can be read off raw observations, but each has a shadow there: how well
single observations tell two agents apart (`shared`), how much the next observation adds (`moves`), and whether more is
told than chance would tell (`p_any`).
"""

from craftrl.diagnostics.agent_pairs.comparison import compare_agents
from craftrl.diagnostics.agent_pairs.findings import AgentPair, AgentPairs, Drift

__all__ = ["AgentPair", "AgentPairs", "Drift", "compare_agents"]
