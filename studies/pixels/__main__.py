"""`python -m studies.pixels`: the study alone, on a machine where only NumPy, SciPy and torch are there."""

import argparse

from studies.pixels import add_arguments, main

parser = argparse.ArgumentParser("python -m studies.pixels", description=__doc__)
add_arguments(parser)
parser.formatter_class = argparse.RawDescriptionHelpFormatter
main(parser.parse_args())
