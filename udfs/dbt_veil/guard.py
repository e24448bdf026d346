"""What stands between a UDF and SQL: arguments that are one constant, and errors that hold no value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class ArgumentError(ValueError):
    """An argument of a UDF cannot be used; the text holds no value."""


def constant(values: pa.ChunkedArray, name: str) -> str:
    """The one text that fills a column.

    Raises:
        ArgumentError: the column is NULL, blank, or holds more than one text.
    """
    text = values[0].as_py() if len(values) else None
    if not isinstance(text, str) or not text.strip() or not pc.all(pc.equal(values, text), skip_nulls=False).as_py():
        raise ArgumentError(f"`{name}` must be one text, the same for all rows")
    return text


def sealed(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, with any error that Veil did not word itself replaced by one that names its type alone.

    DuckDB shows the text of a UDF's exception, and the text of an unforeseen one may hold a value.
    """

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except ValueError as error:
            if type(error).__module__.startswith("dbt_veil."):
                raise
            unforeseen = type(error).__name__
        except Exception as error:
            unforeseen = type(error).__name__
        raise RuntimeError(
            f"{function.__name__} failed with {unforeseen}; its text is withheld, as it may hold a value"
        )

    return call
