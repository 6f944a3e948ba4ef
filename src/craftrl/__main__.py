"""`python -m craftrl`: the command line."""

import sys

from craftrl.cli import main

sys.exit(main())
