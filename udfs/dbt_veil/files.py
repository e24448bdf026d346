"""Write released tables into a file of their own, and swap it in by an atomic rename.

The file is written beside its final place, in a folder that only this user can enter, and renamed when it is complete
and on disk. Until then the last publication stays as it was, and a reader that holds it open keeps reading it. A new
file has no pages that ever held anything else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from dbt_veil.udf import Session, Udf

MARK = "Release records of the tables published here, written by veil.publish."
RECORDS = ("veil", "releases")
_CATALOG = "veil_publication"
_DUCKDB_MAGIC = b"DUCK"


class PublishError(ValueError):
    """Nothing was published; the text says why and how to mend it, and holds no value of a table."""


@dataclass(frozen=True)
class Table:
    """One table of a publication.

    Attributes:
        schema: its schema in the publication.
        name: its name there.
        query: the SELECT on the warehouse that gives its rows.
        description: its comment, or an empty text.
        columns: comments of its columns by name; only those that have one.
    """

    schema: str
    name: str
    query: str
    description: str
    columns: Mapping[str, str]


def publish(connection: duckdb.DuckDBPyConnection, path: str, file_format: str, tables: Sequence[Table]) -> None:
    """Write ``tables`` to ``path`` and swap it in; ``file_format`` is ``duckdb`` or ``parquet``.

    All tables are read in one transaction.

    Raises:
        PublishError: ``path`` is no place for a publication, or writing failed. What was there before still is.
    """
    target = _checked_path(path)
    if file_format == "duckdb":
        _refuse_databases_in_use(connection, target)
        _refuse_other_file(target)
    else:
        _refuse_other_folder(target)
    with _workplace(target) as folder, _explained(target):
        if file_format == "duckdb":
            _write_database(connection, folder / target.name, tables)
            _swap_file(folder / target.name, target)
        else:
            _write_parquet(connection, folder / "files", tables)
            _swap_folder(folder / "files", target)


def udfs(session: Session) -> Sequence[Udf]:
    """``veil_publish(path, format, tables)``; ``tables`` is a JSON list of :class:`Table` fields. Returns ``path``."""

    def veil_publish(path: str, file_format: str, tables: str) -> str:
        publish(session.connection.cursor(), path, file_format, [Table(**table) for table in json.loads(tables)])
        return path

    text = "VARCHAR"
    return [Udf("veil_publish", veil_publish, (text, text, text), text, volatile=True, arrow=False)]


def _checked_path(path: str) -> Path:
    """``path`` with its folder, which is made if it is missing; the last part is not resolved."""
    if not path.strip() or re.search(r"[\x00-\x1f]", path):
        raise PublishError("veil.publish(): `path` must be the path of a file, without control characters")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", path):
        raise PublishError(
            "veil.publish(): `path` must be on this machine, since only a local rename is atomic. "
            f"Publish to a local path and copy that. Got: {path!r}"
        )
    given = Path(path)
    if given.name in ("", ".."):
        raise PublishError(f"veil.publish(): `path` must end in a file name. Got: {path!r}")
    with _explained(given):
        given.parent.mkdir(parents=True, exist_ok=True)
        return given.parent.resolve() / given.name


def _refuse_databases_in_use(connection: duckdb.DuckDBPyConnection, target: Path) -> None:
    """The warehouse itself, and whatever else is attached beside it, is never replaced."""
    attached = connection.execute("select path from duckdb_databases() where path is not null").fetchall()
    for (used,) in attached:
        if Path(used).resolve() == target.resolve():
            raise PublishError(f"veil.publish(): {target.name} is a database that this run has open. Name another file")


def _refuse_other_file(target: Path) -> None:
    """Only a former publication may be replaced."""
    if target.is_symlink() or (target.exists() and not target.is_file()):
        raise PublishError(f"veil.publish(): {target.name} exists and is no file. Give `path` another name")
    if target.exists() and not _is_publication(target):
        raise PublishError(
            f"veil.publish(): {target.name} exists and was not written by veil.publish, or is open for writing. "
            "It stays as it is: give `path` another name, or move that file away"
        )


def _is_publication(file: Path) -> bool:
    with file.open("rb") as handle:
        if handle.read(12)[8:] != _DUCKDB_MAGIC:
            return False
    query = "select 1 from duckdb_tables() where schema_name = ? and table_name = ? and comment = ?"
    try:
        with duckdb.connect(str(file), read_only=True) as published:
            return published.execute(query, [*RECORDS, MARK]).fetchone() is not None
    except duckdb.Error:
        return False


def _refuse_other_folder(target: Path) -> None:
    """A Parquet publication is a link to a folder that this module wrote, and only such a link may be replaced."""
    ours = target.is_symlink() and _folder_name(target).fullmatch(target.readlink().name)
    if os.path.lexists(target) and not ours:
        raise PublishError(
            f"veil.publish(): {target.name} exists and was not written by veil.publish. It stays as it is: "
            "give `path` another name, or move it away"
        )


def _folder_name(target: Path) -> re.Pattern[str]:
    return re.compile(re.escape(f".{target.name}.") + r"[a-z0-9_]+")


@contextmanager
def _workplace(target: Path) -> Iterator[Path]:
    """A folder beside ``target`` that only this user can enter. What a killed run left of its like goes first."""
    prefix = f".{target.name}-unfinished-"
    for left in target.parent.glob(_glob_escaped(prefix) + "*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _glob_escaped(text: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", text)


@contextmanager
def _explained(target: Path) -> Iterator[None]:
    """Turn a failure to write into a message that holds no value: DuckDB's own text might."""
    try:
        yield
    except OSError as error:
        raise PublishError(f"veil.publish(): {target.name} could not be written: {error.strerror}") from None
    except duckdb.Error as error:
        kind = type(error).__name__
        raise PublishError(f"veil.publish(): {target.name} could not be written: DuckDB gave {kind}") from None


def _write_database(connection: duckdb.DuckDBPyConnection, file: Path, tables: Sequence[Table]) -> None:
    connection.execute(f"attach {_literal(str(file))} as {_CATALOG}")
    try:
        connection.execute("begin transaction")
        for table in tables:
            name = f"{_CATALOG}.{_quoted(table.schema)}.{_quoted(table.name)}"
            connection.execute(f"create schema if not exists {_CATALOG}.{_quoted(table.schema)}")
            connection.execute(f"create table {name} as {table.query}")
            if table.description:
                connection.execute(f"comment on table {name} is {_literal(table.description)}")
            for column, description in table.columns.items():
                connection.execute(f"comment on column {name}.{_quoted(column)} is {_literal(description)}")
        connection.execute("commit")
        connection.execute(f"checkpoint {_CATALOG}")
    except duckdb.Error:
        connection.rollback()
        raise
    finally:
        connection.execute(f"detach {_CATALOG}")


def _write_parquet(connection: duckdb.DuckDBPyConnection, folder: Path, tables: Sequence[Table]) -> None:
    """One file a table, ``schema.table.parquet``; descriptions are the file's key-value metadata."""
    folder.mkdir()
    connection.execute("begin transaction")
    try:
        for table in tables:
            file = folder / f"{table.schema}.{table.name}.parquet"
            if file.parent != folder:
                raise PublishError(f"veil.publish(): the table {table.name} cannot be the name of a file")
            texts = {"description": table.description} | {f"column {k}": v for k, v in table.columns.items()}
            pairs = ", ".join(f"{_literal(key)}: {_literal(text)}" for key, text in texts.items() if text)
            metadata = f", kv_metadata {{{pairs}}}" if pairs else ""
            connection.execute(f"copy ({table.query}) to {_literal(str(file))} (format parquet{metadata})")
    finally:
        connection.execute("rollback")


def _swap_file(new: Path, target: Path) -> None:
    """Put the complete file in its place. It is read-only: whoever opens it to write gets an error, not a lock."""
    new.chmod(0o444)
    _flush(new)
    new.replace(target)
    target.with_name(f"{target.name}.wal").unlink(missing_ok=True)
    _flush(target.parent)


def _swap_folder(new: Path, target: Path) -> None:
    """Point the link at the complete folder. The one it pointed at stays for readers until the next publication."""
    for file in new.iterdir():
        file.chmod(0o444)
        _flush(file)
    before = target.readlink().name if target.is_symlink() else None
    final = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    final.chmod(0o755)
    new.chmod(0o755)
    new.replace(final)
    link = new.parent / "link"
    link.symlink_to(final.name, target_is_directory=True)
    link.replace(target)
    _flush(target.parent)
    for folder in target.parent.iterdir():
        if _folder_name(target).fullmatch(folder.name) and folder.name not in (final.name, before):
            shutil.rmtree(folder, ignore_errors=True)


def _flush(path: Path) -> None:
    """Have the operating system put a file or a folder's entries on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: Any) -> str:
    return "'" + str(text).replace("'", "''") + "'"
