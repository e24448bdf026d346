"""The one way back from a token or an encrypted value: with a reason, an audit row first, and into a private file.

Values never return to SQL, so none can reach a table, a log or an artefact by this way.
"""

from __future__ import annotations

import csv
import getpass
import json
import os
from collections.abc import Sequence
from pathlib import Path

from dbt_veil.fpe import cipher_source
from dbt_veil.guard import sealed
from dbt_veil.keys import keyring_source
from dbt_veil.tokens import vault_of
from dbt_veil.udf import Session, Udf

_SHORTEST_REASON = 10


class RevealError(ValueError):
    """A value is not given out; the text says why and holds no value."""


def checked_reason(reason: str) -> str:
    """The reason, which must say something.

    Raises:
        RevealError: it has fewer than ten characters.
    """
    if len(reason.strip()) < _SHORTEST_REASON:
        raise RevealError(f"`reason` must say why, in {_SHORTEST_REASON} characters or more")
    return reason.strip()


def write_private(path: Path, given: Sequence[str], values: Sequence[str | None]) -> None:
    """Write a CSV of two columns, ``given`` and ``value``, to a new file with mode 0600.

    Raises:
        RevealError: the file exists or cannot be made.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise RevealError(f"{path} exists. Name a new file") from None
    except OSError as error:
        raise RevealError(f"{path} cannot be made: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("given", "value"), *zip(given, values, strict=True)])


def udfs(session: Session) -> Sequence[Udf]:
    """The UDFs of this family: each gives how many values it found, and no value."""
    vault = vault_of(session)
    cipher = cipher_source(keyring_source(session.config))

    def audit(relation: str, invocation: str, operation: str, domain: str, given: list[str], reason: str) -> None:
        try:
            user = getpass.getuser()
        except (OSError, KeyError, ImportError):
            user = "unknown"
        with session.connection.cursor() as cursor:
            cursor.execute(
                f"insert into {relation} values (now()::timestamp, ?, ?, ?, ?, ?, ?)",
                [user, operation, domain, json.dumps(given), checked_reason(reason), invocation],
            )

    def detokenize(relation: str, invocation: str, given: list[str], domain: str, reason: str, to: str) -> int:
        audit(relation, invocation, "detokenize", domain, given, reason)
        values = vault.values(given, domain)
        write_private(Path(to), given, values)
        return sum(value is not None for value in values)

    def decrypt(
        relation: str, invocation: str, given: list[str], domain: str, reason: str, to: str, options: str, version: int
    ) -> int:
        audit(relation, invocation, "decrypt", domain, given, reason)
        write_private(Path(to), given, cipher(domain, options, version or None).decrypt(given))
        return len(given)

    def forget(relation: str, invocation: str, given: list[str], domain: str, reason: str) -> int:
        audit(relation, invocation, "forget", domain, given, reason)
        return vault.forget(given, domain)

    text = "VARCHAR"
    common = (text, text, "VARCHAR[]", text, text)
    return (
        Udf("veil_detokenize", sealed(detokenize), (*common, text), "BIGINT", volatile=True, arrow=False),
        Udf("veil_decrypt", sealed(decrypt), (*common, text, text, "INTEGER"), "BIGINT", volatile=True, arrow=False),
        Udf("veil_forget", sealed(forget), common, "BIGINT", volatile=True, arrow=False),
    )
