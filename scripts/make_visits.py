"""Make the demo's visits: who came to which region's practice in which month, how long it took, and what they earn.

Every patient of the demo seed has none to eight visits. Region follows the zip code, the length of a visit follows
age and diagnosis, income is log-normal, and one visit in thirty lacks it. Nobody here exists, and the same seed always
comes out.
"""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path

SEEDS = Path(__file__).resolve().parents[1] / "seeds"
REGIONS = ("Harbour", "Hill", "Lake", "Old Town", "Station", "West")
MONTHS = tuple(f"2025-{month:02d}-01" for month in range(1, 7))
LONG = {"none": 0, "asthma": 10, "cancer": 45, "depression": 25, "diabetes": 15, "HIV": 20}


def visits(patients: list[dict[str, str]]) -> list[dict[str, object]]:
    """The visits of all patients, in no order that tells anything."""
    draw = random.Random(1854)
    rows: list[dict[str, object]] = []
    for patient in patients:
        home = int(patient["zip"]) % len(REGIONS)
        income = round(math.exp(draw.gauss(10.4, 0.6)))
        for _ in range(min(8, int(draw.expovariate(0.55)))):
            away = draw.random() < 0.15
            length = draw.gauss(15 + int(patient["age"]) / 5 + LONG[patient["diagnosis"]], 8)
            rows.append(
                {
                    "patient_id": patient["patient_id"],
                    "region": draw.choice(REGIONS) if away else REGIONS[home],
                    "month": draw.choice(MONTHS),
                    "stay": max(3, round(length)),
                    "income": "" if draw.random() < 1 / 30 else income,
                }
            )
    draw.shuffle(rows)
    return rows


def write(name: str, rows: list[dict[str, object]]) -> None:
    """Write a seed."""
    with (SEEDS / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Rewrite the visits, and the public lists of regions and months and of diagnoses."""
    with (SEEDS / "veil_demo__patients.csv").open(newline="", encoding="utf-8") as file:
        patients = list(csv.DictReader(file))
    write("veil_demo__visits", visits(patients))
    write("veil_demo__regions_and_months", [{"region": r, "month": m} for r in REGIONS for m in MONTHS])
    write("veil_demo__diagnoses", [{"diagnosis": diagnosis} for diagnosis in LONG])


if __name__ == "__main__":
    main()
