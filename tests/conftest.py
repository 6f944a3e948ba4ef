"""No test is timed or random: how long one takes depends on the machine. Libraries have one thread in every process."""

import os

from hypothesis import settings

# Read when NumPy, scikit-learn and torch are loaded, here and in processes that tests start. The threads of several
# workers on as many cores wait for one another: a file of tests takes up to twice as long then. OMP_THREAD_LIMIT is no
# way to do it: convolutions ask OpenMP for more threads than it then gives them, and wait for these for ever.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

settings.register_profile("untimed", deadline=None, derandomize=True)
settings.load_profile("untimed")
