"""What a reader of the repository relies on: one version, a complete lock, and nothing that names a machine."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import dbt_veil
import yaml
from harness import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def tracked() -> list[Path]:
    """Every file of the repository, as git sees it."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def locked() -> dict[str, str]:
    """Normalised name and version of every locked requirement."""
    found = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)", LOCK, flags=re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def test_one_version_everywhere() -> None:
    project = yaml.safe_load((ROOT / "dbt_project.yml").read_text(encoding="utf-8"))
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert newest is not None
    assert project["version"] == PYPROJECT["project"]["version"] == dbt_veil.__version__ == newest.group(1)


def test_the_lock_holds_every_declared_requirement() -> None:
    groups = [PYPROJECT["project"]["dependencies"], *PYPROJECT["project"]["optional-dependencies"].values()]
    declared = {re.split(r"[<>=!~\[; ]", line, maxsplit=1)[0].lower() for group in groups for line in group}
    assert declared - locked().keys() == set()


def test_the_lock_names_no_index_and_hashes_everything() -> None:
    assert "://" not in LOCK
    assert not re.search(r"^\s*--(?:extra-)?(?:index-url|find-links)", LOCK, flags=re.MULTILINE)
    entries = re.split(r"^(?=[A-Za-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_no_file_names_a_machine() -> None:
    patterns = re.compile(r"/(?:work|home|root|Users|tmp)/[A-Za-z]|files\.pythonhosted|index-url")
    allowed = {"Makefile", "tests/python/test_repository.py"}
    names = {path.relative_to(ROOT).as_posix(): path for path in tracked() if path.suffix not in {".csv", ".lock"}}
    assert "dbt_project.yml" in names
    hits = [name for name, path in names.items() if name not in allowed and patterns.search(path.read_text("utf-8"))]
    assert hits == []


def test_the_yaml_of_root_and_consumer_is_strict() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "strict_parse.py")]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
