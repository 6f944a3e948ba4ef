"""No test is timed: how long one takes depends on the machine. And every process of tests has one thread."""

import os

# Read when NumPy, scikit-learn and torch are loaded, here and in the processes that tests start. The threads of several
# workers on as many cores wait for one another: a file of tests takes up to twice as long then.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
