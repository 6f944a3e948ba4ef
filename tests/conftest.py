"""No test is timed: how long one takes depends on the machine. And libraries have one thread in every process."""

import os

from hypothesis import settings

# Read when NumPy, scikit-learn and torch are loaded, here and in processes that tests start. The threads of several
# workers on as many cores wait for one another: a file of tests takes up to twice as long then. Our own threads are
# not concerned: exact fits have as many as by default.
for name in ("OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
