"""Veil's own tables in the warehouse: created once, however many threads ask at the same moment."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_veil.udf import Session, Udf


def run_ddl(session: Session, statement: str) -> bool:
    """Run and commit one DDL statement on a cursor of its own, alone in this process.

    Two transactions that create the same table at once end with a catalogue conflict even under ``if not exists``;
    one after the other they do not.

    Args:
        session: the database's session.
        statement: one ``create … if not exists`` statement.

    Returns:
        True once the statement is committed.
    """
    with session.lock, session.connection.cursor() as cursor:
        cursor.execute(statement)
    return True


def udfs(session: Session) -> Sequence[Udf]:
    """The functions of this family."""
    return [
        Udf(
            name="veil_run_ddl",
            function=lambda statement: run_ddl(session, statement),
            parameters=("VARCHAR",),
            returns="BOOLEAN",
            volatile=True,
            arrow=False,
        )
    ]
