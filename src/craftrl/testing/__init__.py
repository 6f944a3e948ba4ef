"""Contract tests for whoever writes an oracle, a world or a learner.

Each function takes one object, puts it through everything that the rest of the package relies on, and raises
AssertionError with one sentence at the first thing that does not hold. They need no test framework:

    from craftrl.testing import check_oracle

    def test_my_oracle():
        check_oracle(MyOracle(), tau)
"""

from craftrl.testing.learners import check_learner
from craftrl.testing.oracles import check_oracle
from craftrl.testing.worlds import check_gym_world, check_world

__all__ = ["check_gym_world", "check_learner", "check_oracle", "check_world"]
