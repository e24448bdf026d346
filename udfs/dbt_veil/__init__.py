"""The primitives of Veil, the privacy layer for dbt: what SQL cannot do safely or fast.

Every module holds one family of pure functions over numpy or Arrow arrays and a ``udfs`` function that says how
they are called from SQL. :mod:`dbt_veil.plugin` registers them with dbt-duckdb; nothing else here knows of dbt.
"""

__version__ = "0.1.0"
