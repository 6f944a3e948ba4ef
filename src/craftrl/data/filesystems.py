"""fsspec, where a URL asks for it: its view of a store, with its own way of trying again turned off."""

from __future__ import annotations

from typing import Any

from craftrl.errors import MissingDependencyError, RemoteError, require

__all__ = ["filesystem", "patience"]

S3 = ("s3", "s3a")
PATIENCE, SLOWEST = 20.0, 10**5  # seconds for an answer, and bytes in each second after that


def filesystem(url: str) -> tuple[Any, str]:
    """fsspec's view of the store, and the path there. It keeps one for each process and set of options."""
    core, options = require("fsspec.core", "remote"), {}
    scheme = url.partition("://")[0]
    if scheme in S3:
        require("s3fs", "remote")
        told = require("fsspec.config", "remote").conf.get("s3", {}).get("config_kwargs", {})
        options["config_kwargs"] = {"retries": {"total_max_attempts": 1}, **told}  # `attempted` is what tries again
    try:
        fs, path = core.url_to_fs(url, **options)
    except ImportError as error:
        raise MissingDependencyError(f"{scheme}:// needs a package that is not installed ({error}).") from error
    except ValueError as error:
        raise RemoteError(
            f"A URL must be of a kind that fsspec knows; {scheme}:// was given ({error}); check what comes before ://."
        ) from error
    if scheme in S3:
        fs.retries = 1
    return fs, path


def patience(fs: Any, n_bytes: int) -> dict[str, float]:
    """How long to wait for so many bytes, as an argument of fsspec's functions that know it.

    The libraries below have limits of their own, but not in every state of a connection: a server that does not say
    whether it wants a body is waited for without end.
    """
    return {"timeout": PATIENCE + n_bytes / SLOWEST} if fs.async_impl else {}
