"""Drive dbt in-process on a small consumer project: write a seed, a model and its YAML, run, read rows and messages."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import yaml
from dbt.adapters.duckdb.connections import DuckDBConnectionManager
from dbt.cli.main import dbtRunner

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Result:
    """What one dbt command did."""

    success: bool
    messages: list[str]
    nodes: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Everything that was logged or raised, as a reader of the terminal would see it."""
        return "\n".join(self.messages)

    def status(self, name: str) -> str:
        """The status of the model or test called ``name``: success, error, skipped, pass, fail, …"""
        return str(self.nodes[name].status)

    def message(self, name: str) -> str:
        """The message of the model or test called ``name``."""
        return str(self.nodes[name].message)

    def failures(self, name: str) -> int:
        """The number of failing rows of the test called ``name``."""
        return int(self.nodes[name].failures or 0)


class Folder:
    """A dbt project as it stands in a folder.

    Attributes:
        folder: where dbt_project.yml and profiles.yml are.
        warehouse: the DuckDB file that its profile names.
        output: where target/ and logs/ go.
    """

    def __init__(self, folder: Path, warehouse: Path, output: Path | None = None) -> None:
        self.folder = folder
        self.warehouse = warehouse
        self.output = output or folder

    def dbt(self, *arguments: str) -> Result:
        """Run one dbt command in this process and collect what it said."""
        messages: list[str] = []

        def hear(event: Any) -> None:
            if event.info.level != "debug":
                messages.append(event.info.msg)

        runner = dbtRunner(callbacks=[hear])
        output = {"DBT_TARGET_PATH": str(self.output / "target"), "DBT_LOG_PATH": str(self.output / "logs")}
        try:
            with chdir(self.folder), patch.dict(os.environ, output):
                outcome = runner.invoke(
                    [*arguments, "--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
                )
        finally:
            _release_warehouse()
        if outcome.exception is not None:
            messages.append(str(outcome.exception))
        results = getattr(outcome.result, "results", None) or []
        nodes = {getattr(item.node, "name", ""): item for item in results if hasattr(item, "node")}
        messages.extend(str(item.message) for item in results if getattr(item, "message", None))
        return Result(success=bool(outcome.success), messages=messages, nodes=nodes)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query on the warehouse, with no dbt and no UDF."""
        with duckdb.connect(str(self.warehouse), read_only=True) as connection:
            return connection.execute(sql).fetchall()

    def scalar(self, sql: str) -> Any:
        """The single value of a query on the warehouse."""
        ((value,),) = self.query(sql)
        return value

    def compiled(self, name: str) -> str:
        """The compiled SQL of a model."""
        (path,) = (self.output / "target" / "compiled").rglob(f"{name}.sql")
        return path.read_text(encoding="utf-8")

    def manifest(self) -> dict[str, Any]:
        """The manifest of the last command."""
        return dict(json.loads((self.output / "target" / "manifest.json").read_text(encoding="utf-8")))

    def artefacts(self) -> str:
        """All text under target/ and logs/: what must never hold a personal value or a secret."""
        paths = [p for base in ("target", "logs") for p in (self.output / base).rglob("*") if p.is_file()]
        return "\n".join(p.read_text(encoding="utf-8", errors="replace") for p in paths)


class Project(Folder):
    """A consumer of the package in a temporary folder."""

    def __init__(self, folder: Path, *, threads: int = 2, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(folder, folder / "warehouse.duckdb")
        for name in ("models", "seeds", "tests", "macros", "snapshots", "dbt_packages"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        package = folder / "dbt_packages" / "veil"
        if not package.exists():
            package.symlink_to(ROOT, target_is_directory=True)
        self._yaml("packages.yml", {"packages": [{"local": str(ROOT)}]})
        self.configure()
        self.profile(threads=threads, config=config)

    def configure(self, **settings: Any) -> None:
        """Write dbt_project.yml; ``settings`` are further top-level keys such as ``vars`` or ``models``."""
        project = {
            "name": "consumer",
            "version": "1.0.0",
            "config-version": 2,
            "profile": "consumer",
            "flags": {"send_anonymous_usage_stats": False, "require_generic_test_arguments_property": True},
        }
        self._yaml("dbt_project.yml", project | settings)

    def profile(
        self, *, threads: int = 2, config: Mapping[str, Any] | None = None, plugin: bool = True, **settings: Any
    ) -> None:
        """Write profiles.yml; ``config`` is the plugin's, ``settings`` are further keys such as ``attach``."""
        output: dict[str, Any] = {
            "type": "duckdb",
            "path": str(self.warehouse),
            "schema": "main",
            "threads": threads,
            **settings,
        }
        if plugin:
            output["plugins"] = [{"module": "dbt_veil.plugin", "config": dict(config or {})}]
        self._yaml("profiles.yml", {"consumer": {"target": "dev", "outputs": {"dev": output}}})

    def seed(
        self, name: str, rows: Iterable[Mapping[str, Any]], *, types: Mapping[str, str] | None = None, **entry: Any
    ) -> None:
        """Write a seed; ``None`` is an empty field. ``types`` are its column types, ``entry`` its YAML."""
        rows = list(rows)
        with (self.folder / "seeds" / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        config = dict(entry.pop("config", {}))
        if types:
            config["column_types"] = dict(types)
        self.properties("seeds", name, config=config, **entry)

    def model(self, name: str, sql: str, **entry: Any) -> None:
        """Write a model; ``entry`` is its YAML: ``config``, ``columns``, ``data_tests``, …"""
        (self.folder / "models" / f"{name}.sql").write_text(sql, encoding="utf-8")
        self.properties("models", name, **entry)

    def macro(self, name: str, sql: str) -> None:
        """Write a macro file."""
        (self.folder / "macros" / f"{name}.sql").write_text(sql, encoding="utf-8")

    def test(self, name: str, sql: str) -> None:
        """Write a singular test."""
        (self.folder / "tests" / f"{name}.sql").write_text(sql, encoding="utf-8")

    def properties(self, kind: str, name: str, **entry: Any) -> None:
        """Write the YAML of one node of ``kind`` (models, seeds, sources, snapshots)."""
        folder = "models" if kind == "sources" else kind
        self._yaml(f"{folder}/_{kind}__{name}.yml", {"version": 2, kind: [{"name": name, **entry}]})

    def _yaml(self, name: str, content: Mapping[str, Any]) -> None:
        (self.folder / name).write_text(yaml.safe_dump(dict(content), sort_keys=False), encoding="utf-8")


def _release_warehouse() -> None:
    """Close the database that dbt-duckdb keeps open in this process, so that a test can read the file."""
    environment = DuckDBConnectionManager._ENV
    DuckDBConnectionManager.close_all_connections()
    if environment is not None:
        environment.close()


def rows(header: str, *lines: str) -> list[dict[str, Any]]:
    """Rows from a header and comma-separated lines; the word NULL is ``None``."""
    names = [name.strip() for name in header.split(",")]
    return [
        {n: None if v.strip() == "NULL" else v.strip() for n, v in zip(names, line.split(","), strict=True)}
        for line in lines
    ]


def columns(roles: Mapping[str, Mapping[str, Any] | str]) -> Sequence[dict[str, Any]]:
    """The YAML of columns from ``{name: role}`` or ``{name: {role: …, hierarchy: …}}``."""
    return [
        {"name": name, "config": {"meta": {"veil": {"role": role} if isinstance(role, str) else dict(role)}}}
        for name, role in roles.items()
    ]
