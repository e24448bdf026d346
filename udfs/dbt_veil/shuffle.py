"""Randomness for shuffling and swapping: from the operating system, never from the engine's generator."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dbt_veil.udf import Session, Udf


def random_keys(count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Independent uniform numbers from 0 to 2**64 - 1, shape (count,), from the operating system."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def udfs(session: Session) -> Sequence[Udf]:
    """The UDFs of this family."""

    def random_key(rows: pa.ChunkedArray) -> pa.Array:
        return pa.array(random_keys(len(rows)), pa.uint64())

    return (Udf("veil_random_key", random_key, ("BIGINT",), "UBIGINT", volatile=True, sees_null=True),)
