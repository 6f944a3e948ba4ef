"""`craftrl estimate`: what a fit will take, before it is started."""

from __future__ import annotations

import argparse
from typing import Any

from craftrl.arguments import positive

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl estimate shards/ --nodes 4
  craftrl estimate --trajectories 1e9 --horizon 30 --features 128 --nodes 10 100 1000
  craftrl estimate shards/ --calibrate
  craftrl estimate videos.h5 --frames-per-second 20000 --nodes 4

prints time by phase, memory, bytes moved and cost of a fit by counting, on one machine (craftrl fit DATA) and on
clusters (craftrl fit DATA --backend ray). Sizes come from DATA or from the options, which go first. The constants were
measured on one machine and are good to a factor of two on another; --calibrate measures the two that matter most here,
in some seconds. docs/from-laptop-to-cluster.md has the formulas."""

SIZES = {
    "trajectories": "of all agents together; 1e9 may be written",
    "horizon": "steps of each (default: 30)",
    "features": "entries of an observation (default: 128)",
    "values": "values that an entry takes (default: 2)",
    "agents": "how many there are (default: 2)",
}


def whole(text: str) -> int:
    """A whole number of at least 1, also as 1e9."""
    try:
        value = float(text)
        if value >= 1 and value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, such as 5000 or 1e9; {text!r} was given")


def amount(text: str) -> float:
    """A number of at least 0."""
    try:
        value = float(text)
        if 0 <= value < float("inf"):
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be a number of at least 0; {text!r} was given")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="?", metavar="DATA", help="a folder of shards or another store, for its sizes")
    for name, meaning in SIZES.items():
        parser.add_argument(f"--{name}", type=whole, metavar="N", help=meaning)
    parser.add_argument(
        "--coupling",
        choices=["auto", "independent", "chain", "posterior", "markov", "tied"],
        help="default: markov, or the next one that can add up the losses of so many trajectories",
    )
    parser.add_argument("--bounds-given", action="store_true", help="alpha, eta and nu are given, not searched for")
    parser.add_argument(
        "--shard-mb",
        type=whole,
        metavar="MB",
        help="size of a shard (default: the shards that DATA has; else 64, as they are written)",
    )
    parser.add_argument(
        "--nodes", type=positive, nargs="+", default=[10, 100, 1000], metavar="N", help="default: 10 100 1000"
    )
    parser.add_argument("--cores-per-node", type=positive, default=16, metavar="N", help="default: 16")
    parser.add_argument("--price-per-node-hour", type=amount, default=1.0, metavar="MONEY", help="default: 1")
    parser.add_argument(
        "--bandwidth",
        type=amount,
        default=1.25e9,
        metavar="BYTES",
        help="a second and node (default: 1.25e9, 10 Gbit/s)",
    )
    parser.add_argument("--calibrate", action="store_true", help="measure how fast this machine reads and counts")
    parser.add_argument(
        "--frames-per-second", type=amount, metavar="F", help="also for a network that trains at this speed on one rank"
    )
    parser.add_argument("--epochs", type=amount, default=10.0, metavar="E", help="of that network (default: 10)")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.distributed.forecast import Forecast, NetworkJob
    from craftrl.distributed.job import Cluster
    from craftrl.distributed.rates import Rates

    job = _job(args)
    machine = Cluster(1, args.cores_per_node, args.bandwidth, args.price_per_node_hour)
    rates = Rates.shipped()
    if args.calibrate:
        rates = rates.calibrated()
        print(f"One core here reads and packs {rates.read / 1e9:.2f} GB and counts {rates.count:.2g} bits a second.\n")
    forecast = str(Forecast(job, machine, args.nodes, rates))
    if args.frames_per_second is not None:
        frame_bytes = job.features * job.item_bytes
        network = NetworkJob(job.trajectories * job.horizon, frame_bytes, args.frames_per_second, args.epochs)
        forecast += f"\n\n{network.text(args.nodes, args.price_per_node_hour)}"
    print(forecast)


def _job(args: argparse.Namespace) -> Any:
    from craftrl.distributed.forecast import job_of
    from craftrl.distributed.job import Job
    from craftrl.errors import InvalidParameterError

    given = {name: getattr(args, name) for name in (*SIZES, "coupling") if getattr(args, name) is not None}
    given["bounds_given"] = args.bounds_given
    if args.shard_mb is not None:
        given["shard_bytes"] = args.shard_mb * 10**6
    if args.data is not None:
        return job_of(args.data, **given)
    if args.trajectories is None:
        raise InvalidParameterError(
            "An estimate needs sizes; neither DATA nor --trajectories was given; give a dataset, or say --trajectories "
            "1e6."
        )
    return Job(**given)
