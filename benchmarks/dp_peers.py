"""The same parameters, asked of others: noise scales and thresholds of Veil beside PipelineDP (with PyDP) and OpenDP.

Usage: ``python benchmarks/dp_peers.py``, with ``pip install pipeline-dp opendp pyarrow duckdb``.
A peer that is not installed is named and left out.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "udfs"))

from dbt_veil import noise, selection


def installed(name: str) -> bool:
    found = importlib.util.find_spec(name) is not None
    if not found:
        print(f"{name} is not installed here")
    return found


def line(what: str, ours: float, theirs: float) -> None:
    print(f"{what:58} Veil {ours:16.9f}   peer {theirs:16.9f}   ratio {ours / theirs:.9f}")


def against_pipeline_dp() -> None:
    """Thresholds of PyDP's Laplace and Gaussian partition selection, and its chance of keeping a small key."""
    import pipeline_dp
    from pipeline_dp import dp_computations, partition_selection

    kinds = pipeline_dp.PartitionSelectionStrategy
    for epsilon, delta, groups in itertools.product((0.5, 1.0), (1e-5, 1e-6), (1, 3, 5)):
        peer = partition_selection.create_partition_selection_strategy(
            kinds.LAPLACE_THRESHOLDING, epsilon, delta, groups
        )
        what = f"tau, Laplace, epsilon {epsilon}, delta {delta}, {groups} groups"
        line(what, selection.laplace_tau(epsilon, delta, groups), peer.threshold)
    people = 12
    peer = partition_selection.create_partition_selection_strategy(kinds.LAPLACE_THRESHOLDING, 1.0, 1e-5, 1, 10)
    above = selection.laplace_tau(1.0, 1e-5, 1) + 10 - 1 - people
    line(f"chance of {people} people at pre-threshold 10", 0.5 * math.exp(-above), peer.probability_of_keep(people))
    for epsilon, delta, l2 in itertools.product((0.5, 1.0), (1e-5, 1e-6), (1.0, math.sqrt(3))):
        theirs = dp_computations.compute_sigma(epsilon, delta, l2)
        ours = noise.analytic_gaussian_sigma(epsilon, delta, l2)
        line(f"sigma, epsilon {epsilon}, delta {delta}, L2 {l2:.3f}", ours, theirs)


def against_opendp() -> None:
    """Scales that OpenDP finds by searching its own privacy maps."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    for epsilon, groups, most in itertools.product((0.1, 0.5, 1.0), (1, 3), (1, 250_000)):
        theirs = dp.binary_search_param(
            lambda scale: dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale),
            d_in=groups * most,
            d_out=epsilon,
            T=float,
        )
        what = f"Laplace scale, epsilon {epsilon}, {groups} groups, at most {most}"
        line(what, noise.laplace_scale(groups * most, Decimal(str(epsilon))), theirs)


if __name__ == "__main__":
    if installed("pipeline_dp"):
        against_pipeline_dp()
    if installed("opendp"):
        against_opendp()
