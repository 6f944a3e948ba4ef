"""`craftrl render`: a video of trajectories with the learned state drawn into it."""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.arguments import natural, positive
from craftrl.data.files import check_new

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl render model.safetensors frames.h5 --out states.mp4
  craftrl render model.safetensors frames.h5 --trajectories 0 7 600 --fps 8 --out states.gif

Left: what is seen. Right: the pixels that decide on the state, if the encoder is a network. Below: the state."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="as craftrl fit writes it")
    parser.add_argument("data", type=Path, metavar="DATA", help="images, as craftrl collect writes them")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="NAME.mp4, NAME.mkv or NAME.gif")
    parser.add_argument(
        "--trajectories", type=natural, nargs="+", metavar="I", help="from 0; default: the first of each agent"
    )
    parser.add_argument("--fps", type=positive, default=4, metavar="N", help="frames a second (default: %(default)s)")
    parser.add_argument("--force", action="store_true", help="replace a file that is there already")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    import numpy as np

    from craftrl import TrajectoryDataset, load
    from craftrl.deploy.videos import check_video, render

    check_video(args.out)
    check_new(args.out, "video", args.force)
    model = load(args.model)
    tau = TrajectoryDataset.open(args.data)
    chosen = args.trajectories or np.unique(tau.agent, return_index=True)[1].tolist()
    render(model, tau, args.out, chosen, args.fps, overwrite=args.force)
    print(f"Written to {args.out}: trajectories {', '.join(map(str, chosen))}")
