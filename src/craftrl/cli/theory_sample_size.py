"""`craftrl theory sample-size`: the theorem with every constant, and its inverse.

Paper: Theorem 3.1
"""

from __future__ import annotations

import argparse
from typing import Any

from craftrl.arguments import positive
from craftrl.cli.parser import number
from craftrl.cli.worlds import add_world_arguments, table_world_of
from craftrl.errors import InvalidParameterError

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl theory sample-size --world bits --epsilon-0 0.05 --delta 0.05
  craftrl theory sample-size --alpha 1 --eta 1/5 --nu 5/32 --nu-prime 1/2 --horizon 30 --class-size 256
  craftrl theory sample-size --world bits --trajectories 10000

These are worst-case constants: in the paper's world CRAFT works with a thousand trajectories per agent."""

BOUNDS = ("alpha", "eta", "nu", "nu_prime")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epsilon-0", type=number, default=0.05, help="errors allowed in each state (default: 0.05)")
    parser.add_argument("--delta", type=number, default=0.05, help="probability of failure (default: 0.05)")
    parser.add_argument("--trajectories", type=positive, metavar="N", help="which epsilon_0 do N in all guarantee?")
    parser.add_argument("--class-size", type=positive, metavar="N", help="encoders per step; for bits 2 M")
    parser.add_argument("--states", type=positive, metavar="N", help="N_s (default: the world's, or 2)")
    for name in BOUNDS:
        parser.add_argument(f"--{name.replace('_', '-')}", type=number, help="taken from the world unless given")
    add_world_arguments(parser, tables_only=True)
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.paper import guaranteed_epsilon, sample_size

    problem = _problem(args)
    if args.trajectories is None:
        print(sample_size(epsilon_0=args.epsilon_0, **problem))
        return
    epsilon = guaranteed_epsilon(args.trajectories, **problem)
    if epsilon is None:
        print(f"The theorem guarantees nothing for {args.trajectories} trajectories.")
    else:
        print(
            f"{args.trajectories} trajectories guarantee epsilon_0 = {epsilon:.4g} with probability 1 - {args.delta:g}."
        )


def _problem(args: argparse.Namespace) -> dict[str, Any]:
    """What the theorem needs to know: from the arguments, and from the world where they are silent."""
    given = {name: getattr(args, name) for name in BOUNDS}
    H, class_size, N_s = args.horizon, args.class_size, args.states or 2
    if args.world is not None:
        from craftrl.paper import population_assumptions

        world, policies = table_world_of(args)
        known = population_assumptions(world, policies)
        given = {name: getattr(known, name).value if value is None else value for name, value in given.items()}
        H = world.H
        N_s = args.states or max(world.n_states(h) for h in range(1, H + 1))
        if class_size is None and args.world == "bits":
            class_size = 2 * world.obs_shape[0]
    missing = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is None]
    missing += ["--horizon"] * (H is None) + ["--class-size"] * (class_size is None)
    if missing:
        raise InvalidParameterError(f"The theorem needs {', '.join(missing)} too; give them, or a --world.")
    return {"delta": args.delta, "H": H, "class_size": class_size, "N_s": N_s, **given}
