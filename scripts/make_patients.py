"""Give every patient of the demo seed an invented number, name, e-mail address and telephone number.

The quasi-identifiers and the diagnosis in the seed stay as they are. Names are drawn from short lists, addresses are
under example.org (RFC 2606), and telephone numbers lie in 555-0100 to 555-0199, which is kept for fiction. The same
seed always comes out: nothing here is secret, and nobody here exists.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

SEED = Path(__file__).resolve().parents[1] / "seeds" / "veil_demo__patients.csv"
KEPT = ("zip", "age", "birth_day", "sex", "diagnosis")
HEADER = ("patient_id", "full_name", "email", "phone", *KEPT)

GIVEN = {
    "F": """
        Ada Alma Amara Bella Carmen Clara Dalia Edith Elena Fatima Flora Greta Hana Ida Ines Iris Jana Juno
        Kaya Leila Lena Lucia Mabel Maya Mina Nadia Nora Olga Petra Priya Rhea Rosa Sadie Selma Tara Thea
        Uma Vera Wanda Zora
    """,
    "M": """
        Abel Adam Amir Anton Basil Bruno Cyrus Dario Denis Elias Emil Felix Gideon Hugo Ivan Jonas Julian
        Karim Kofi Leon Linus Marco Mateo Milan Nico Omar Oscar Otto Pablo Rafael Ravi Rufus Samir Silas
        Tariq Theo Ugo Victor Wendell Yusuf
    """,
}
FAMILY = """
    Alder Ashby Barlow Birch Blackwood Bright Calder Carver Chandler Cooper Dale Draper Ember Fairweather
    Farrow Fenwick Fletcher Forester Gale Garland Glover Granger Greenfield Hale Harper Hawthorn Hazel Heath
    Holloway Hyde Ivory Juniper Keeler Kestrel Lark Linden Lockwood Marlow Mason Merriweather Miller Moss
    Nightingale North Oakley Orchard Page Partridge Pike Quill Rainer Redfern Reeve Rivers Rook Rowan Sawyer
    Sexton Shepherd Sparrow Stone Summers Swift Tanner Thorne Tiller Underhill Vale Walker Weaver Wheeler
    Whitlock Winter Wren Yarrow York
"""


def identified(patients: list[dict[str, str]]) -> list[dict[str, str]]:
    """The same patients in the same order, each with the four invented identifiers."""
    draw = random.Random(1854)
    numbers = draw.sample(range(100_000, 1_000_000), len(patients))
    area_codes = [code for code in range(201, 990) if code % 100 != 11]
    lines = draw.sample(range(100 * len(area_codes)), len(patients))
    families = FAMILY.split()
    result = []
    for patient, number, line in zip(patients, numbers, lines, strict=True):
        given, family = draw.choice(GIVEN[patient["sex"]].split()), draw.choice(families)
        invented = {
            "patient_id": f"P{number}",
            "full_name": f"{given} {family}",
            "email": f"{given}.{family}.{number % 10_000:04d}@example.org".lower(),
            "phone": f"+1-{area_codes[line // 100]}-555-01{line % 100:02d}",
        }
        result.append(invented | {name: patient[name] for name in KEPT})
    return result


def main() -> None:
    """Rewrite the identifiers of the seed."""
    with SEED.open(newline="", encoding="utf-8") as file:
        patients = list(csv.DictReader(file))
    with SEED.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=HEADER, lineterminator="\n")
        writer.writeheader()
        writer.writerows(identified(patients))


if __name__ == "__main__":
    main()
