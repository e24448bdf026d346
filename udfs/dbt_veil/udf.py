"""How a family of primitives offers its functions to SQL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb
from duckdb.func import FunctionNullHandling, PythonUDFType

if TYPE_CHECKING:
    from dbt_veil.noise import Reservation


@dataclass(frozen=True)
class Udf:
    """One function as DuckDB sees it.

    Attributes:
        name: the name in SQL; always starts with ``veil_``.
        function: takes one ``pyarrow.ChunkedArray`` or ``pyarrow.Array`` a parameter, all of one length, and
            returns an Arrow array of that length. With ``arrow=False`` it takes and returns Python scalars.
        parameters: DuckDB type names, one a parameter. DuckDB casts no INTEGER, DOUBLE or DATE to VARCHAR here.
        returns: DuckDB type name of the result.
        volatile: the function draws randomness or changes state. Without it DuckDB folds a call with constant
            arguments to one result for all rows.
        sees_null: rows with a NULL argument reach the function. Without it they give NULL and the function is
            not asked.
        arrow: vectorised over Arrow arrays.
    """

    name: str
    function: Callable[..., Any]
    parameters: tuple[str, ...]
    returns: str
    volatile: bool = False
    sees_null: bool = False
    arrow: bool = True

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Create the function on ``connection``'s database."""
        connection.create_function(
            self.name,
            self.function,
            list(self.parameters),
            self.returns,
            type=PythonUDFType.ARROW if self.arrow else PythonUDFType.NATIVE,
            null_handling=FunctionNullHandling.SPECIAL if self.sees_null else FunctionNullHandling.DEFAULT,
            side_effects=self.volatile,
        )


@dataclass
class Session:
    """What the UDFs of one database share for as long as it is open.

    Attributes:
        config: the plugin's ``config`` in ``profiles.yml``: names and paths, never a secret itself.
        connection: the root connection; a UDF that runs statements does so on ``connection.cursor()``.
        lock: held by whoever must be alone in this process, such as the ledger's door.
        reservations: the releases by id that the ledger's door has opened; no noise is drawn for any other.
        verified: number and hash of the last row of each ledger that was found whole.
    """

    config: Mapping[str, Any]
    connection: duckdb.DuckDBPyConnection
    lock: threading.RLock = field(default_factory=threading.RLock)
    reservations: dict[str, Reservation] = field(default_factory=dict)
    verified: dict[str, tuple[int, str]] = field(default_factory=dict)


Family = Callable[[Session], Sequence[Udf]]
