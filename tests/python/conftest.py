"""Fixtures shared by all tests."""

from __future__ import annotations

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
