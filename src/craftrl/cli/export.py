"""`craftrl export`: a network's encoder as an ONNX file."""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.arguments import positive

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl export model.safetensors --out encoder.onnx
  craftrl export model.safetensors --h 5 --out encoder5.onnx

The file takes "observations" (n, ...), as they were recorded, and gives "log_probabilities" (n, states); the state is
the most likely one. It is compared with the model in onnxruntime before it gets its name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="as craftrl fit writes it, with a network")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="NAME.onnx")
    parser.add_argument("--h", type=positive, metavar="H", help="the step, if the model has an encoder for each")
    parser.add_argument("--force", action="store_true", help="replace a file that is there already")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl import load
    from craftrl.deploy import export_onnx
    from craftrl.deploy.onnx_file import check_onnx

    check_onnx(args.out, args.force)
    export_onnx(load(args.model), args.out, args.h, overwrite=args.force)
    print(f"Written to {args.out}")
