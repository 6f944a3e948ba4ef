"""What is asked of a store over a network: tried several times where that may help, told in one sentence where not."""

from __future__ import annotations

import errno
import logging
import os
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from craftrl.errors import CraftError, RemoteError

__all__ = ["attempted"]

T = TypeVar("T")
TRIES = 6
FIRST_WAIT = 0.25  # seconds; each wait is twice the one before: about eight in all
LOG = logging.getLogger("craftrl")  # says so on standard error, unless told otherwise: nobody should wait in silence

TELLING = (FileNotFoundError, FileExistsError, EOFError)  # answers rather than failures: for the caller to judge
NEVER_ANOTHER = (errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.ENOSPC, errno.ENAMETOOLONG, errno.EREMCHG)
DAMAGED_ON_THE_WAY = ("IncompleteBody", "BadDigest", "XAmzContentSHA256Mismatch", "RequestTimeout")
# What libraries of stores raise where they find no credentials, by name: they may not be installed.
WITHOUT_CREDENTIALS = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "ProfileNotFound",
    "NoAuthTokenError",
    "TokenRetrievalError",
    "SSOTokenLoadError",
    "UnauthorizedSSOTokenError",
    "DefaultCredentialsError",
)
FOR_GOOD = ("ParamValidationError", "InvalidRegionError", "InvalidEndpointURLError")


def attempted(url: str, doing: str, function: Callable[[], T]) -> T:
    """What the function returns, tried again after a while where the store was slow, busy or cut off.

    `doing` is "read", "written" and the like. Nothing is tried twice that a second try cannot mend. `TELLING` errors
    pass as they are; every other one becomes a RemoteError, which says how often it was tried.
    """
    waits = random.Random(f"{os.getpid()} {url}")  # so that a thousand workers do not come back at one moment
    for attempt in range(1, TRIES + 1):
        try:
            return function()
        except (CraftError, *TELLING):
            raise
        except Exception as error:
            if _is_denied(error):
                raise RemoteError(
                    f"The store must let you in; {url} cannot be {doing} ({_reason(error)}); check your credentials "
                    "and the rights that they have there."
                ) from error
            if _is_for_good(error):
                raise RemoteError(
                    f"The store must be able to do what is asked; {url} cannot be {doing} ({_reason(error)}); check "
                    "the name, the region and the endpoint."
                ) from error
            if attempt == TRIES:
                raise RemoteError(
                    f"The store must answer; {url} could not be {doing} in {TRIES} tries ({_reason(error)}); check the "
                    "network and the endpoint, and give the same command again."
                ) from error
            LOG.warning("%s could not be %s (%s); try %d of %d", url, doing, _reason(error), attempt + 1, TRIES)
            time.sleep(FIRST_WAIT * 2 ** (attempt - 1) * waits.uniform(0.75, 1.25))
    raise AssertionError("unreachable")


def _is_denied(error: Exception) -> bool:
    return isinstance(error, PermissionError) or type(error).__name__ in WITHOUT_CREDENTIALS


def _is_for_good(error: Exception) -> bool:
    """Whether the next try would end in the same way: nothing was slow, busy or cut off."""
    if isinstance(error, OSError):
        wrong = isinstance(error, (IsADirectoryError, NotADirectoryError)) or error.errno in NEVER_ANOTHER
        return wrong and _code(error) not in DAMAGED_ON_THE_WAY
    return isinstance(error, (ValueError, TypeError, NotImplementedError)) or type(error).__name__ in FOR_GOOD


def _code(error: Exception) -> str:
    """What S3 calls an error that s3fs has made one of Python's."""
    response: Any = getattr(error.__cause__, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text[:200] or type(error).__name__
