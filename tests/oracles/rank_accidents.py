"""`craftrl` in two ranks, of which the second comes to harm while it trains: once by an error, once by a signal.

python rank_accidents.py FOLDER    FOLDER/shards is fitted; FOLDER/ACCIDENT.txt says what was printed and how it ended

The ranks are started, watched and ended by the launcher that is behind torchrun. They are forked from this process,
which has imported what they need: under torchrun most of the time would go into importing it six times.
"""

import os
import signal
import sys
from pathlib import Path

import torch._dynamo  # noqa: F401  every optimiser imports it
from rank_runs import options
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

import craftrl.oracles.network.training as loop
from craftrl.cli import main
from craftrl.errors import InvalidDataError


def rank(accident, arguments, printed):
    for stream in (1, 2):
        os.dup2(os.open(printed, os.O_WRONLY | os.O_APPEND | os.O_CREAT), stream)
    parts, minibatches = loop._Passes._parts, []

    def harmed(*given):
        minibatches.append(1)
        if len(minibatches) == 5:
            if accident == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise InvalidDataError("Shard 7 must be whole; it is on fire; put it out.")
        return parts(*given)

    if os.environ["RANK"] == "1":
        loop._Passes._parts = harmed
    sys.exit(main(arguments))


def launch(folder, accident):
    settings = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        monitor_interval=0.1,
        start_method="fork",
    )
    printed = folder / f"{accident}.txt"
    try:
        elastic_launch(settings, rank)(accident, options(folder / "shards", folder / accident), printed)
    except ChildFailedError as failed:
        with printed.open("a") as file:
            file.write(f"\n{failed}")


if __name__ == "__main__":
    for accident in ("error", "kill"):
        launch(Path(sys.argv[1]), accident)
