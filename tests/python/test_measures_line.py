"""The earth mover's distance on a line against SciPy's, on random tables."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from harness import Project
from scipy.stats import wasserstein_distance


def test_the_distance_on_a_line_is_scipys(project: Project) -> None:
    generator = np.random.default_rng(11)
    table = [
        (int(q), round(float(generator.gamma(2, 10 + q)), int(q) % 3))
        for q in generator.integers(0, 40, 1500)
        for _ in range(int(generator.integers(1, 3)))
    ]
    values = ", ".join(f"({q}, {s})" for q, s in table)
    project.model("people", f"select q, s::double as s from (values {values}) as t(q, s)")
    for name in ("numeric", "ordered"):
        call = f"veil.t_closeness(ref('people'), ['q'], 's', distance='{name}')"
        project.model(name, f"{{{{ {call} }}}}", config={"materialized": "table"})
    project.model(
        "step_by_step",
        "{% set specs = veil._measure_spec("
        "'t', 't', ref('people'), ['q'], 's', {'distance': 'numeric'}, none, 'group', none) %}{% set spec = specs[0] %}"
        "with {{ veil._counted(spec) }}, {{ veil._classes(spec) }}, {{ veil._value_counts(spec, 1) }},"
        " {{ veil._global_reference(spec, 1) }}, {{ veil.default___t_along_a_line(spec, spec.request, 1, '') }}"
        " select q_1 as q, people, row_count, measured as t from figures",
        config={"materialized": "table"},
    )
    result = project.dbt("run")
    assert result.success, result.text
    classes = defaultdict(list)
    for q, s in table:
        classes[q].append(s)
    everyone = np.array([s for _, s in table])
    distinct = np.unique(everyone)
    for name, place in (("numeric", lambda v: v), ("ordered", lambda v: np.searchsorted(distinct, v))):
        places = place(everyone)
        span = places.max() - places.min()
        expected = {q: wasserstein_distance(place(np.array(own)), places) / span for q, own in classes.items()}
        assert dict(project.query(f"select q, t from {name}")) == pytest.approx(expected, abs=1e-9)
        if name == "numeric":
            assert dict(project.query("select q, t from step_by_step")) == pytest.approx(expected, abs=1e-9)
