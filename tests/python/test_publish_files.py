"""Publications as files: complete or not there, nothing else in them, and readers left alone."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from dbt_veil.files import MARK, PublishError, Table, publish
from harness import ROOT

CANARY = "zed.q@example.org"


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as connection:
        connection.execute("create schema staging")
        connection.execute(f"create table staging.people as select '{CANARY}' || range as email from range(5000)")
        connection.execute("create table main.ages as select range % 7 as age, 'none' as diagnosis from range(700)")
        yield connection


def tables(select: str = "select age, diagnosis from main.ages") -> list[Table]:
    records = Table("veil", "releases", "select 'r1' as release_id", MARK, {})
    return [Table("main", "ages", select, "Ages; it's public", {"age": 'in "years"'}), records]


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(query).fetchall()


def refusal(warehouse: duckdb.DuckDBPyConnection, path: object, file_format: str = "duckdb") -> str:
    with pytest.raises(PublishError) as error:
        publish(warehouse, str(path), file_format, tables())
    return str(error.value)


def test_the_file_holds_the_tables_with_their_comments_and_nothing_else(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = tmp_path / "new folder" / "it's.duckdb"
    publish(warehouse, str(path), "duckdb", tables())
    found = rows(path, "select schema_name, table_name, estimated_size, comment from duckdb_tables() order by 1")
    assert found == [("main", "ages", 700, "Ages; it's public"), ("veil", "releases", 1, MARK)]
    comments = rows(path, "select column_name, comment from duckdb_columns() where comment is not null")
    assert comments == [("age", 'in "years"')]
    assert rows(path, "select count(*) from duckdb_views() where not internal") == [(0,)]
    assert [p.name for p in path.parent.iterdir()] == ["it's.duckdb"]
    assert path.stat().st_mode & 0o777 == 0o444


def test_no_byte_of_another_table_is_in_the_file(warehouse: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    warehouse.execute("set force_compression = 'uncompressed'")
    warehouse.execute("create table staging.more as select email || email as email from staging.people")
    warehouse.execute("checkpoint")
    assert CANARY.encode() in (tmp_path / "warehouse.duckdb").read_bytes()
    path = tmp_path / "public.duckdb"
    publish(warehouse, str(path), "duckdb", tables())
    publish(warehouse, str(path), "duckdb", tables())
    content = path.read_bytes()
    assert b"zed.q" not in content
    assert b"select" not in content.lower()
    assert rows(path, "select free_blocks from pragma_database_size()") == [(0,)]


def test_a_failed_publish_leaves_the_last_one(warehouse: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "public.duckdb"
    publish(warehouse, str(path), "duckdb", tables())
    before = path.read_bytes()
    broken = tables("select cast(email as integer) as age from staging.people")
    with pytest.raises(PublishError) as error:
        publish(warehouse, str(path), "duckdb", broken)
    assert str(error.value) == "veil.publish(): public.duckdb could not be written: DuckDB gave ConversionException"
    assert error.value.__cause__ is None
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["public.duckdb", "warehouse.duckdb", "warehouse.duckdb.wal"]
    publish(warehouse, str(path), "duckdb", tables())


READER = """
    import sys, duckdb
    connection = duckdb.connect(sys.argv[1], read_only=True)
    print(connection.execute("select count(*) from ages").fetchall(), flush=True)
    sys.stdin.readline()
    print(connection.execute("select count(*) from ages").fetchall(), flush=True)
"""


def test_a_reader_is_not_disturbed_and_blocks_nothing(warehouse: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "public.duckdb"
    publish(warehouse, str(path), "duckdb", tables())
    command = [sys.executable, "-c", textwrap.dedent(READER), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdin is not None
        assert reader.stdout.readline() == "[(700,)]\n"
        publish(warehouse, str(path), "duckdb", tables("select age, diagnosis from main.ages where age = 1"))
        assert rows(path, "select count(*) from ages") == [(100,)]
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == "[(700,)]\n"


KILLED = """
    import os, signal, sys, duckdb
    from dbt_veil import files
    files._swap_file = lambda new, target: os.kill(os.getpid(), signal.SIGKILL)
    table = files.Table("veil", "releases", "select 2 as a", files.MARK, {})
    files.publish(duckdb.connect(), sys.argv[1], "duckdb", [table])
"""


def test_a_killed_publish_leaves_the_last_one_and_the_next_tidies_up(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = tmp_path / "public.duckdb"
    publish(warehouse, str(path), "duckdb", tables())
    before = path.read_bytes()
    environment = os.environ | {"PYTHONPATH": str(ROOT / "udfs")}
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(path)], env=environment)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    assert len(list(tmp_path.glob(".public.duckdb-unfinished-*"))) == 1
    publish(warehouse, str(path), "duckdb", tables())
    assert list(tmp_path.glob(".public.duckdb-unfinished-*")) == []


def test_parquet_is_a_folder_behind_a_link(warehouse: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "public"
    publish(warehouse, str(path), "parquet", tables())
    first = path.resolve()
    assert sorted(p.name for p in path.iterdir()) == ["main.ages.parquet", "veil.releases.parquet"]
    assert duckdb.sql(f"select count(*) from '{path}/main.ages.parquet'").fetchall() == [(700,)]
    pairs = duckdb.sql(f"select decode(key), decode(value) from parquet_kv_metadata('{path}/main.ages.parquet')")
    assert {("description", "Ages; it's public"), ("column age", 'in "years"')} <= set(pairs.fetchall())
    publish(warehouse, str(path), "parquet", tables("select age from main.ages where age = 1"))
    assert duckdb.sql(f"select count(*) from '{path}/main.ages.parquet'").fetchall() == [(100,)]
    assert (first / "main.ages.parquet").exists(), "readers of the last publication are cut off"
    publish(warehouse, str(path), "parquet", tables())
    assert not first.exists()
    assert len(list(tmp_path.glob(".public.*"))) == 2


@pytest.mark.parametrize("file_format", ["duckdb", "parquet"])
def test_a_folder_of_somebody_else_beside_it_is_never_deleted(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path, file_format: str
) -> None:
    path = tmp_path / "config"
    publish(warehouse, str(path), file_format, tables())
    copy = tmp_path / ".config.copy"
    if file_format == "parquet":
        shutil.copytree(path.resolve().parent, copy)
    kept = [tmp_path / name for name in (".config.old", ".config.d", ".config-unfinished-notes", copy.name)]
    for folder in kept:
        folder.mkdir(exist_ok=True)
        (folder / "precious.txt").write_text("mine", encoding="utf-8")
    for _ in range(3):
        publish(warehouse, str(path), file_format, tables())
    assert [(folder / "precious.txt").exists() for folder in kept] == [True] * 4


def test_a_link_into_a_folder_of_somebody_else_is_not_replaced(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    (tmp_path / ".config.old" / "files").mkdir(parents=True)
    (tmp_path / "config").symlink_to(".config.old/files", target_is_directory=True)
    assert "was not written by veil.publish" in refusal(warehouse, tmp_path / "config", "parquet")
    assert (tmp_path / "config").readlink() == Path(".config.old/files")


def test_a_log_of_a_database_is_deleted_only_with_the_publication_it_belongs_to(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = tmp_path / "public.duckdb"
    log = tmp_path / "public.duckdb.wal"
    log.write_text("mine", encoding="utf-8")
    assert "public.duckdb.wal exists without public.duckdb" in refusal(warehouse, path)
    assert log.read_text(encoding="utf-8") == "mine"
    log.unlink()
    publish(warehouse, str(path), "duckdb", tables())
    path.chmod(0o644)
    with duckdb.connect(str(path)) as changed:
        changed.execute("set checkpoint_threshold = '1GB'; pragma disable_checkpoint_on_shutdown")
        changed.execute("insert into ages select 1, 'none'")
    assert log.exists()
    publish(warehouse, str(path), "duckdb", tables())
    assert not log.exists()
    assert rows(path, "select count(*) from ages") == [(700,)]


def test_a_publication_follows_the_umask(warehouse: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        publish(warehouse, str(tmp_path / "public.duckdb"), "duckdb", tables())
        publish(warehouse, str(tmp_path / "public"), "parquet", tables())
    finally:
        os.umask(before)
    folder = (tmp_path / "public").resolve()
    found = [tmp_path / "public.duckdb", folder / "main.ages.parquet", folder, folder.parent]
    assert [oct(path.stat().st_mode & 0o777) for path in found] == ["0o440", "0o440", "0o750", "0o750"]


def test_the_warehouse_is_never_replaced(warehouse: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    expected = "veil.publish(): warehouse.duckdb is a database that this run has open. Name another file"
    assert refusal(warehouse, tmp_path / "warehouse.duckdb") == expected
    assert refusal(warehouse, tmp_path / "x" / ".." / "warehouse.duckdb") == expected
    (tmp_path / "alias").symlink_to(tmp_path, target_is_directory=True)
    assert refusal(warehouse, tmp_path / "alias" / "warehouse.duckdb") == expected
    assert refusal(warehouse, tmp_path / "warehouse.duckdb", "parquet") == expected


@pytest.mark.parametrize("file_format", ["duckdb", "parquet"])
def test_the_log_of_a_database_is_never_written(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path, file_format: str
) -> None:
    warehouse.execute("checkpoint")
    (tmp_path / "warehouse.duckdb.wal").unlink(missing_ok=True)
    for name in ("warehouse.duckdb.wal", "later.duckdb.WAL", "warehouse.duckdb.wal.checkpoint"):
        assert "`path` must not end in .wal" in refusal(warehouse, tmp_path / name, file_format)
        assert not os.path.lexists(tmp_path / name)
    warehouse.execute(f"attach '{tmp_path / 'other.wal'}' as other")
    assert "is a database that this run has open" in refusal(warehouse, tmp_path / "other", file_format)


@pytest.mark.parametrize("content", [b"not a database", b"", b"12345678DUCK and no more"])
def test_a_file_that_is_no_publication_is_never_replaced(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    assert "exists and was not written by veil.publish" in refusal(warehouse, path)
    assert "exists and was not written by veil.publish" in refusal(warehouse, path, "parquet")
    assert path.read_bytes() == content


def test_another_database_is_never_replaced(warehouse: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as other:
        other.execute("create schema veil; create table veil.releases as select 1 as a")
    assert "was not written by veil.publish" in refusal(warehouse, path)
    with duckdb.connect(str(path)) as other:
        assert other.execute("select a from veil.releases").fetchall() == [(1,)]


def test_hostile_paths_are_refused(warehouse: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert "without control characters" in refusal(warehouse, "")
    assert "without control characters" in refusal(warehouse, "a\x00b")
    assert "must be on this machine" in refusal(warehouse, "s3://bucket/public.duckdb")
    assert "must end in a file name" in refusal(warehouse, "..")
    assert "folder exists and is no file" in refusal(warehouse, tmp_path / "folder")
    assert "link exists and is no file" in refusal(warehouse, tmp_path / "link")
    assert "was not written by veil.publish" in refusal(warehouse, tmp_path / "folder", "parquet")
    assert "was not written by veil.publish" in refusal(warehouse, tmp_path / "link", "parquet")
    assert "could not be written: File exists" in refusal(warehouse, tmp_path / "warehouse.duckdb" / "x.duckdb")
    assert "could not be written: File name too long" in refusal(warehouse, tmp_path / ("n" * 250))
    assert "could not be written: File name too long" in refusal(warehouse, tmp_path / ("n" * 300), "parquet")
    assert "must not begin with an unknown home folder" in refusal(warehouse, "~nobody-of-that-name/public.duckdb")
    odd = tmp_path / "a'; drop table main.ages; --[x]*.duckdb"
    publish(warehouse, str(odd), "duckdb", tables())
    assert rows(odd, "select count(*) from ages") == [(700,)]


def test_the_home_folder_is_written_as_in_a_shell(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    publish(warehouse, "~/public.duckdb", "duckdb", tables())
    assert rows(tmp_path / "home" / "public.duckdb", "select count(*) from ages") == [(700,)]


def test_a_folder_that_takes_no_file_is_explained(
    warehouse: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/secret/place")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    expected = "veil.publish(): public could not be written: No space left on device"
    assert refusal(warehouse, tmp_path / "public") == expected
    assert refusal(warehouse, tmp_path / "public", "parquet") == expected
