"""Parse this project and the consumer in integration_tests with every warning an error.

dbt 1.11 carries the schema that dbt 2.0 will enforce, but checks YAML against it only for some adapters. DuckDB is
added to them here, so that a key in the wrong place is found now.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner
from dbt.jsonschemas import jsonschemas

ROOT = Path(__file__).resolve().parents[1]


def complaints(project: Path) -> list[str]:
    """Everything that dbt warns of or refuses when it parses one project."""
    jsonschemas._JSONSCHEMA_SUPPORTED_ADAPTERS.add("duckdb")
    os.chdir(project)
    heard: list[str] = []

    def hear(event: Any) -> None:
        if event.info.level in ("warn", "error"):
            heard.append(event.info.msg)

    commands = [["deps", "--quiet"]] if (project / "packages.yml").exists() else []
    commands.append(["parse", "--quiet", "--no-partial-parse", "--show-all-deprecations"])
    for command in commands:
        result = dbtRunner(callbacks=[hear]).invoke([*command, "--profiles-dir", str(project), "--target", "ci"])
        if not result.success:
            return [*heard, str(result.exception)]
    return heard


def main() -> int:
    """0 if both projects pass."""
    heard = {project.name: complaints(project) for project in (ROOT, ROOT / "integration_tests")}
    for name, messages in heard.items():
        for message in messages:
            print(f"strict parse of {name}: {message}", file=sys.stderr)
    return 1 if any(heard.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
