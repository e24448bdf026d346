"""Write released tables into a file of their own, and swap it in by an atomic rename.

The file is written beside its final place, in a folder that only this user can enter, and renamed when it is complete
and on disk. Until then the last publication stays as it was, and a reader that holds it open keeps reading it. A new
file has no pages that ever held anything else. Every folder made here holds a marker, and none without it is deleted.
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
_MARKER = ".written-by-veil-publish"
_DATABASE = "database"
_FILES = "files"


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
    with _explained(target):
        _refuse_databases_in_use(connection, target)
        if file_format == "duckdb":
            _refuse_other_file(target)
        else:
            _refuse_other_folder(target)
        with _workplace(target) as folder:
            if file_format == "duckdb":
                _write_database(connection, folder / _DATABASE, tables)
                _swap_file(folder / _DATABASE, target)
            else:
                _write_parquet(connection, folder / _FILES, tables)
                _swap_folder(folder / _FILES, target)


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
    try:
        given = Path(path).expanduser()
    except RuntimeError:
        raise PublishError(
            f"veil.publish(): `path` must not begin with an unknown home folder. Got: {path!r}"
        ) from None
    if given.name in ("", ".."):
        raise PublishError(f"veil.publish(): `path` must end in a file name. Got: {path!r}")
    if re.search(r"\.wal(\.[a-z]+)?$", given.name, re.IGNORECASE):
        raise PublishError(
            f"veil.publish(): `path` must not end in .wal, which DuckDB takes for the log of a database. Got: {path!r}"
        )
    with _explained(given):
        given.parent.mkdir(parents=True, exist_ok=True)
        return given.parent.resolve() / given.name


def _refuse_databases_in_use(connection: duckdb.DuckDBPyConnection, target: Path) -> None:
    """The warehouse itself, and whatever else is attached beside it, is never replaced."""
    attached = connection.execute("select path from duckdb_databases() where path is not null").fetchall()
    for (used,) in attached:
        if Path(used).resolve() in (target.resolve(), _log_of(target).resolve()):
            raise PublishError(f"veil.publish(): {target.name} is a database that this run has open. Name another file")


def _log_of(target: Path) -> Path:
    """Where DuckDB keeps what was written to ``target`` and not yet checkpointed."""
    return target.with_name(f"{target.name}.wal")


def _refuse_other_file(target: Path) -> None:
    """Only a former publication may be replaced."""
    if target.is_symlink() or (target.exists() and not target.is_file()):
        raise PublishError(f"veil.publish(): {target.name} exists and is no file. Give `path` another name")
    if target.exists() and not _is_publication(target):
        raise PublishError(
            f"veil.publish(): {target.name} exists and was not written by veil.publish, or is open for writing. "
            "It stays as it is: give `path` another name, or move that file away"
        )
    if not target.exists() and os.path.lexists(_log_of(target)):
        raise PublishError(
            f"veil.publish(): {target.name}.wal exists without {target.name}, and DuckDB would take it for its log. "
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
    if os.path.lexists(target) and _published_folder(target) is None:
        raise PublishError(
            f"veil.publish(): {target.name} exists and was not written by veil.publish. It stays as it is: "
            "give `path` another name, or move it away"
        )


def _published_folder(target: Path) -> Path | None:
    """The folder beside ``target`` that it is a link into, if it is such a link and the folder is marked."""
    if not target.is_symlink():
        return None
    linked = target.readlink()
    folder = target.parent / linked.parent.name
    is_ours = linked == Path(folder.name, _FILES) and _folder_name(target).fullmatch(folder.name) and _is_marked(folder)
    return folder if is_ours else None


def _folder_name(target: Path) -> re.Pattern[str]:
    return re.compile(re.escape(f".{target.name}.") + r"[a-z0-9_]+")


def _marked_folder(prefix: str, parent: Path) -> Path:
    """A new folder that only this user can enter, with the marker that allows a later run to delete it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    (folder / _MARKER).write_bytes(os.fsencode(folder.name))
    return folder


def _is_marked(folder: Path) -> bool:
    """Whether this module made ``folder``: the marker holds the folder's name, so that no copy of it counts."""
    try:
        return not folder.is_symlink() and (folder / _MARKER).read_bytes() == os.fsencode(folder.name)
    except OSError:
        return False


@contextmanager
def _workplace(target: Path) -> Iterator[Path]:
    """A folder beside ``target`` that only this user can enter. What a killed run left of its like goes first."""
    prefix = f".{target.name}-unfinished-"
    for left in target.parent.glob(_glob_escaped(prefix) + "*"):
        if _is_marked(left):
            shutil.rmtree(left, ignore_errors=True)
    folder = _marked_folder(prefix, target.parent)
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
        raise PublishError(
            f"veil.publish(): {target.name} could not be written: {error.strerror or type(error).__name__}"
        ) from None
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
    new.chmod(_allowed(new.parent, 0o444))
    _flush(new)
    if target.exists():
        _log_of(target).unlink(missing_ok=True)
    new.replace(target)
    _flush(target.parent)


def _swap_folder(new: Path, target: Path) -> None:
    """Point the link at the complete folder. The one it pointed at stays for readers until the next publication."""
    mode = _allowed(new.parent, 0o444)
    for file in new.iterdir():
        file.chmod(mode)
        _flush(file)
    before = _published_folder(target)
    final = _marked_folder(f".{target.name}.", target.parent)
    final.chmod(_allowed(new.parent, 0o755))
    new.chmod(_allowed(new.parent, 0o755))
    new.replace(final / _FILES)
    link = new.parent / "link"
    link.symlink_to(Path(final.name, _FILES), target_is_directory=True)
    link.replace(target)
    _flush(target.parent)
    for folder in target.parent.iterdir():
        if _folder_name(target).fullmatch(folder.name) and folder not in (final, before) and _is_marked(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _allowed(folder: Path, mode: int) -> int:
    """What the umask leaves of ``mode``. A new folder tells: reading the umask itself changes it for a moment."""
    probe = folder / "probe"
    probe.mkdir(mode)
    allowed = probe.stat().st_mode & 0o777
    probe.rmdir()
    return allowed


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
