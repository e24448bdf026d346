"""Noise through SQL and the ledger's door, with their growth. Prints one line a measurement; needs no data.

Run it alone on a machine: ``python benchmarks/ledger.py``. Each figure is the median of its repetitions.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "udfs"), str(ROOT / "tests" / "python")]

from dbt_veil.noise import Mechanism, response_truth  # noqa: E402
from test_ledger import Door  # noqa: E402
from test_noise import connect  # noqa: E402

MECHANISMS = {
    "laplace": (Mechanism("q", "laplace", Decimal(1), Decimal(0), 10.0), "veil_laplace('r', 'q', range, 10.0)"),
    "gaussian": (Mechanism("q", "gaussian", Decimal(1), Decimal("1e-6"), 10.0), "veil_gaussian('r', 'q', range, 10.0)"),
    "exponential (61 candidates)": (
        Mechanism("q", "exponential", Decimal(1), Decimal(0), 2.0, 1, 1, 1.0),
        "veil_exponential('r', 'q', [-(range + i) % 50 for i in range(61)], 2.0)",
    ),
    "randomized response": (
        Mechanism("q", "randomized_response", Decimal(1), Decimal(0), response_truth(1, 10), categories=10),
        "veil_randomized_response('r', 'q', range % 10, 10, 1.0)",
    ),
}


def median(action: Callable[[int], object], times: int) -> float:
    seconds = []
    for attempt in range(times):
        begin = time.perf_counter()
        action(attempt)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def noise() -> None:
    print("noisy values through SQL: seconds")
    for name, (mechanism, call) in MECHANISMS.items():
        connection = connect(mechanism)
        for rows in (1_000, 10_000, 100_000, 1_000_000):
            if (rows == 1_000_000 and mechanism.kind != "laplace") or (
                rows > 10_000 and mechanism.kind == "exponential"
            ):
                continue
            sql = f"select sum({call}) from range({rows})"
            seconds = median(lambda _, c=connection, s=sql: c.execute(s).fetchall(), 3 if rows < 1_000_000 else 1)
            print(f"  {name:28} {rows:>9,} rows  {seconds:8.3f}")


def door() -> None:
    print("ledger: seconds")
    kinds = ("laplace", "gaussian")
    queries = [{"name": f"q{i}", "mechanism": kinds[i % 2], "l0": 1 + i % 3, "linf": 1} for i in range(500)]
    with tempfile.TemporaryDirectory() as folder:
        opened = Door(str(Path(folder) / "w.duckdb"), Path(folder) / "head.json")
        opened.budgets["people"] |= {"epsilon": 10**6, "delta": 1e-3}
        batch = 0
        for rows in (500, 2_500, 10_000, 40_000):
            while batch * 500 < rows:
                assert opened.reserve(f"bulk{batch}", request={"epsilon": 50, "delta": 1e-5, "queries": queries}) == []
                batch += 1
            opened.session.verified.clear()
            first = median(lambda _: opened.reserve(f"first{rows}"), 1)  # noqa: B023
            reserve = median(lambda i: opened.reserve(f"r{rows}_{i}"), 9)  # noqa: B023
            settle = median(lambda i: opened.settle(f"r{rows}_{i}"), 9)  # noqa: B023
            status = median(lambda _: opened.call("budget_status"), 3)
            print(
                f"  {rows:>6,} rows: first reserve of a process {first:.3f}, reserve {reserve:.3f}, "
                f"settle {settle:.3f}, status by sum, zCDP and PLD {status:.3f}"
            )
        opened.close()


if __name__ == "__main__":
    noise()
    door()
