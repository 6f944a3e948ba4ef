"""`craftrl encode`: the learned state of every observation, as a table."""

from __future__ import annotations

import argparse

from craftrl.cli.backend import add_backend_options, refuse_cluster_options
from craftrl.data.files import check_new
from craftrl.data.places import place

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl encode model data.h5 --out states.parquet
  craftrl encode model data.h5 --out states.csv
  craftrl encode model shards/ --backend ray --out states/

.parquet and .csv have one line for each observation: trajectory, agent, h, state. .npz has the arrays states (n, H), -1
where a trajectory is over, and agent (n,). With --backend ray it is a folder with an array of states (n, H) for each
shard, and states.json, which lists them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=place, metavar="MODEL", help="as craftrl fit writes it")
    parser.add_argument("data", type=place, metavar="DATA", help="trajectories, as craftrl collect writes them")
    parser.add_argument("--out", required=True, type=place, metavar="FILE", help="NAME.parquet, NAME.csv or NAME.npz")
    parser.add_argument("--force", action="store_true", help="replace a file that is there already")
    add_backend_options(parser)
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl import TrajectoryDataset, load
    from craftrl.deploy.tables import check_table, write_states

    if args.backend == "ray":
        _encode_shards(args)
        return
    refuse_cluster_options(args)
    check_table(args.out)
    check_new(args.out, "table", args.force)
    model = load(args.model)
    tau = TrajectoryDataset.open(args.data)
    states = model.transform(tau)
    write_states(args.out, states, tau.agent, overwrite=args.force)
    print(f"{int((states >= 0).sum())} states of {tau.n} trajectories written to {args.out}")


def _encode_shards(args: argparse.Namespace) -> None:
    """Each worker writes the states of its own shards; none of them come here."""
    from craftrl import load
    from craftrl.cli.backend import parts_shown, shards_of, workers_of
    from craftrl.distributed import encode_on_shards
    from craftrl.distributed.encoding import check_states_folder
    from craftrl.errors import InvalidParameterError

    if args.out.suffix in (".parquet", ".csv", ".npz"):
        raise InvalidParameterError(
            f"With --backend ray, --out must be a folder, in which every shard has a file; {args.out} was given; leave "
            f"out {args.out.suffix}."
        )
    folder = shards_of([args.data])
    check_states_folder(args.out, args.force)  # before a cluster is started for nothing
    model = load(args.model)
    with workers_of(args) as executor, parts_shown("encode"):
        encode_on_shards(model, folder, args.out, executor, overwrite=args.force)
    print(f"The states of all trajectories in {folder} written to {args.out}")
