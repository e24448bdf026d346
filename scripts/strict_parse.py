"""Parse this project and the consumer in integration_tests with every warning an error.

dbt 1.11 carries the schema that dbt 2.0 will enforce, but checks YAML against it only for some adapters. DuckDB is
added to them here, so that a key in the wrong place is found now.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dbt.cli.main import dbtRunner
from dbt.jsonschemas import jsonschemas

ROOT = Path(__file__).resolve().parents[1]


def strict_parse(project: Path) -> bool:
    """Parse one project strictly; dbt prints what it refuses."""
    jsonschemas._JSONSCHEMA_SUPPORTED_ADAPTERS.add("duckdb")
    os.chdir(project)
    commands = [["deps", "--quiet"]] if (project / "packages.yml").exists() else []
    commands.append(["parse", "--quiet", "--no-partial-parse", "--show-all-deprecations", "--warn-error"])
    for command in commands:
        result = dbtRunner().invoke([*command, "--profiles-dir", str(project), "--target", "ci"])
        if not result.success:
            print(f"strict parse of {project.name}: {result.exception or 'failed'}", file=sys.stderr)
            return False
    return True


def main() -> int:
    """0 if both projects pass."""
    return 0 if strict_parse(ROOT) and strict_parse(ROOT / "integration_tests") else 1


if __name__ == "__main__":
    sys.exit(main())
