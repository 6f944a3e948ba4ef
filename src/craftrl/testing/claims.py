"""How a check fails: one sentence that says what must hold and what was found."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

__all__ = ["about", "must", "must_answer", "must_refuse"]

Check = TypeVar("Check", bound=Callable[..., Any])


def must(holds: Any, sentence: str) -> None:
    """Fail with this sentence unless it holds."""
    if not holds:
        raise AssertionError(sentence)


def must_answer(ask: Callable[[], Any], what: str) -> Any:
    """The answer; fail where there is none but an exception."""
    try:
        return ask()
    except Exception as error:
        raise AssertionError(f"{what}; {type(error).__name__} was raised: {error}") from error


def must_refuse(kind: type[Exception], ask: Callable[[], Any], what: str) -> None:
    """Fail unless the call raises an error of this kind, with a message."""
    try:
        ask()
    except kind as error:
        must(str(error), f"{what} must be refused with a sentence; the {kind.__name__} has no message.")
        return
    except Exception as error:
        raise AssertionError(
            f"{what} must be refused with {kind.__name__}; {type(error).__name__} was raised: {error}"
        ) from error
    raise AssertionError(f"{what} must be refused with {kind.__name__}; nothing was raised.")


def about(subject: str) -> Callable[[Check], Check]:
    """A check that fails with a sentence about its subject, whatever is raised in it."""

    def decorate(check: Check) -> Check:
        @wraps(check)
        def checked(*given: Any) -> Any:
            try:
                return check(*given)
            except AssertionError:
                raise
            except Exception as error:
                raise AssertionError(
                    f"{subject} must come without an error; {type(error).__name__} was raised: {error}"
                ) from error

        return cast(Check, checked)

    return decorate
