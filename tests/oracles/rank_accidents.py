"""`craftrl` under torchrun, where the second rank comes to harm while it trains. ACCIDENT says how."""

import os
import signal
import sys

import craftrl.oracles.network.training as loop
from craftrl.cli import main
from craftrl.errors import InvalidDataError

parts, minibatches = loop._parts, []


def harmed(*given):
    minibatches.append(1)
    if len(minibatches) == 5:
        if os.environ["ACCIDENT"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise InvalidDataError("Shard 7 must be whole; it is on fire; put it out.")
    return parts(*given)


if os.environ["RANK"] == "1":
    loop._parts = harmed
sys.exit(main())
