"""The dbt-duckdb plugin: registers the UDFs of every family, and decides nothing.

In ``profiles.yml``::

    plugins:
      - module: dbt_veil.plugin
        config:
          keyring_file: secrets/veil_keyring.json
"""

from __future__ import annotations

from typing import Any

import duckdb
from dbt.adapters.duckdb.plugins import BasePlugin

from dbt_veil import (
    attack,
    bookkeeping,
    cells,
    door,
    dp_planning,
    fake,
    files,
    fpe,
    geo,
    levels,
    noise,
    pii,
    pseudonym,
    reveal,
    tokens,
)
from dbt_veil.udf import Family, Session

FAMILIES: tuple[Family, ...] = (
    attack.udfs,
    bookkeeping.udfs,
    cells.udfs,
    door.udfs,
    dp_planning.udfs,
    fake.udfs,
    files.udfs,
    fpe.udfs,
    geo.udfs,
    levels.udfs,
    noise.udfs,
    pii.udfs,
    pseudonym.udfs,
    reveal.udfs,
    tokens.udfs,
)


class Plugin(BasePlugin):
    """Registers Veil's UDFs once per database."""

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        """Keep the configuration; keys are read when a pseudonym is first asked for."""
        self._config = plugin_config

    def configure_connection(self, conn: duckdb.DuckDBPyConnection) -> None:
        """Create every UDF that this database does not have yet."""
        query = "select distinct function_name from duckdb_functions() where starts_with(function_name, 'veil_')"
        present = {name for (name,) in conn.execute(query).fetchall()}
        session = Session(config=self._config, connection=conn)
        for family in FAMILIES:
            for udf in family(session):
                if udf.name not in present:
                    udf.register(conn)
