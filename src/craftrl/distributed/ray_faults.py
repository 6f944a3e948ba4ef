"""What Ray raises, in the library's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from craftrl.errors import ClusterError

__all__ = ["told_plainly"]

# Names of Ray's errors, since versions differ in which they have, and what helps.
ADVICE = {
    "OutOfMemoryError": "a worker had too little memory; write smaller shards, or use fewer workers on each machine",
    "OutOfDiskError": "a disk for values that memory does not hold is full; make room, or use more machines",
    "ObjectStoreFullError": "the memory for shared values is full; use fewer workers, or more machines",
    "NodeDiedError": "a machine was lost; see that enough of them stay, and run it again",
    "NodeAffinitySchedulingStrategy": "a machine was lost; run it again",
}
OTHERWISE = "workers were lost more often than it is tried again; see Ray's logs, and run it again"


@contextmanager
def told_plainly(ray: ModuleType) -> Iterator[None]:
    """An error of a task is raised as itself; a failure of the cluster's becomes one sentence."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, ray.exceptions.RayError) or not isinstance(cause, Exception):
            raise _failed(cause or error) from error
        raise cause from None
    except ray.exceptions.RayError as error:
        raise _failed(error) from error


def _failed(error: BaseException) -> ClusterError:
    advice = next((ADVICE[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in ADVICE), OTHERWISE)
    return ClusterError(f"Work on the cluster must come to an end; it did not ({type(error).__name__}): {advice}.")
