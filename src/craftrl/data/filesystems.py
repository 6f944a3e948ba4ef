"""fsspec, where a URL asks for it: its view of a store, with its own way of trying again turned off."""

from __future__ import annotations

from typing import Any

from craftrl.errors import InvalidParameterError, MissingDependencyError, require

__all__ = ["filesystem"]

S3 = ("s3", "s3a")


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
        raise InvalidParameterError(
            f"A URL must be of a kind that fsspec knows; {url} was given ({error}); check what comes before ://."
        ) from error
    if scheme in S3:
        fs.retries = 1
    return fs, path
