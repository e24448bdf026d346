"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from harness import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty consumer project of its own for one test."""
    return Project(tmp_path)


@pytest.fixture(scope="module")
def shared_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One consumer project for all tests of a module, so that it is parsed once and not for each of them."""
    return Project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public data sets that some long checks read: the variable VEIL_DATA names it."""
    folder = os.environ.get("VEIL_DATA")
    assert folder, "set VEIL_DATA to the folder that holds adult/, registry/ and the other data sets"
    return Path(folder)
