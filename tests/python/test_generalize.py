"""Hierarchies: each value and level gives the label that the hierarchy promises, and nothing else gets through."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import Any

import pytest
from harness import Project, Result, columns

AGE_BANDS = {"kind": "intervals", "cuts": [0, 18, 65], "open_above": True}

HIERARCHIES: dict[str, Any] = {
    "age": {"kind": "intervals", "widths": [5, 10, 20], "range": [0, 100], "open_above": True},
    "age_bands": AGE_BANDS,
    "closed_bands": {"kind": "intervals", "cuts": [0, 18, 65]},
    "share": {"kind": "intervals", "widths": [0.1, 0.5], "range": [0, 1]},
    "change": {
        "kind": "intervals",
        "cuts": [[-20, -10, 0, 10], [-10, 0]],
        "open_below": "true",
        "open_above": True,
        "whole": "true",
    },
    "zip": {"kind": "prefix", "keep": [4, 3], "width": 5},
    "text_zip": {"kind": "prefix", "keep": [3]},
    "day": {"kind": "dates", "levels": ["day", "month", "quarter", "year", "decade", "century"]},
    "moment": {"kind": "dates", "levels": ["hour", "hour_of_day", "part_of_day"]},
    "week": {"kind": "dates", "levels": ["week"]},
    "weekday": {"kind": "dates", "levels": ["weekday"]},
    "job": {
        "kind": "tree",
        "tree": {
            "Care 'n' cure": {"Care": ["nurse", "midwife"], "Cure": ["doctor"]},
            "Trade": {"Food": ["cook", "O'Neil's"], "Words": ["no", 7]},
        },
    },
    "salary": {"kind": "top_bottom", "bottom": [10, 20], "top": [90, 80]},
    "income": {"kind": "rounding", "to": [10, 100, 300]},
    "fine": {"kind": "intervals", "cuts": [0, 0.123456789012], "open_above": True},
    "capped": {"kind": "top_bottom", "top": 89.5},
    "town": {"kind": "lookup", "relation": "towns"},
    "rare": {"kind": "merge_rare", "relation": "areas", "column": "area", "minimum": 3},
    "extreme": {"kind": "merge_extremes", "relation": "areas", "column": "age", "minimum": "3"},
    "named_levels": {"kind": "lookup", "relation": "named_levels", "columns": ["years", "decade", "all"]},
}


def case(name: str, level: int, *values: str, column: str = "x", **options: Any) -> str:
    """A model that labels the SQL literals ``values`` at ``level`` with ``veil.generalize``."""
    hierarchy = name if name.startswith("{") else repr(name)
    listed = ", ".join(f"({position}, {value})" for position, value in enumerate(values))
    extra = "".join(f", {key}={value!r}" for key, value in options.items())
    call = f"veil.generalize({column!r}, {hierarchy}, {level}, relation_alias='t'{extra})"
    return f'select position, {{{{ {call} }}}} as label from (values {listed}) as t (position, "{column}") order by 1'


TOWNS = [("alta", "north", "*"), ("bodo", "north", "*"), ("oslo", "south", "*"), ("O'Hara", "so'uth", "*")]

HARD_NAMES = ["order", "Group", "with space", "uuid-part1", "Ünï", "select", "user", "veil_label"]
MANY_KEYS = "{'kind': 'tree', 'tree': {'Low': range(300) | list, 'High': range(300, 600) | list}}"

# case: (SQL, labels that must come out)
GOOD: dict[str, tuple[str, list[Any]]] = {
    "level_0_is_the_value": (case("age", 0, "7", "null"), ["7", None]),
    "top_is_a_star": (case("age", 4, "7", "null", "-3"), ["*", "*", "*"]),
    "whole_numbers": (
        case("age", 2, "0", "9", "10", "99", "100", "2000"),
        ["0-9", "0-9", "10-19", "90-99", "100+", "100+"],
    ),
    "widest": (case("age", 3, "19", "20"), ["0-19", "20-39"]),
    "tiny_integers": (case("age", 1, "cast(7 as tinyint)", "cast(127 as tinyint)"), ["5-9", "100+"]),
    "unsigned": (case("change", 1, "cast(7 as utinyint)", "cast(200 as utinyint)"), ["0-9", "10+"]),
    "borders": (
        case("age_bands", 1, "0", "17", "17.5", "18", "64.999", "65", "120"),
        ["[0,18)", "[0,18)", "[0,18)", "[18,65)", "[18,65)", "[65,inf)", "[65,inf)"],
    ),
    "borders_as_doubles": (
        case("age_bands", 1, "0e0", "17.5e0", "18e0", "65e0"),
        ["[0,18)", "[0,18)", "[18,65)", "[65,inf)"],
    ),
    "closed_top": (
        case("closed_bands", 1, "64.9", "65", "120", on_unmapped="mark"),
        ["[18,65)", "<unmapped>", "<unmapped>"],
    ),
    "steps_as_decimals": (case("share", 1, "0.3", "0.6", "0.7"), ["[0.3,0.4)", "[0.6,0.7)", "[0.7,0.8)"]),
    "steps_as_doubles": (case("share", 1, "0.3e0", "0.6e0", "0.7e0"), ["[0.3,0.4)", "[0.6,0.7)", "[0.7,0.8)"]),
    "steps_as_floats": (
        case("share", 1, "0.3::float", "0.6::float", "0.7::float"),
        ["[0.3,0.4)", "[0.6,0.7)", "[0.7,0.8)"],
    ),
    "steps_up": (case("share", 2, "0.49", "0.5"), ["[0,0.5)", "[0.5,1)"]),
    "too_many_digits": (
        case("share", 1, "9999999999::decimal(38, 28)", "0.3", on_unmapped="mark"),
        ["<unmapped>", "[0.3,0.4)"],
    ),
    "too_many_digits_whole": (
        case("fine", 1, "170141183460469231731687303715884105727::hugeint", "0", on_unmapped="mark"),
        ["<unmapped>", "[0,0.123456789012)"],
    ),
    "many_digits_rounded": (case("income", 1, "44999.9999::decimal(38, 33)", "45"), ["45000", "50"]),
    "many_digits_capped": (
        case("capped", 1, "170141183460469231731687303715884105727::hugeint", "90", on_unmapped="mark"),
        ["<unmapped>", "89.5+"],
    ),
    "negative": (
        case("change", 1, "-21", "-20", "-11", "-10", "-1", "0", "10"),
        ["<-20", "-20 to -11", "-20 to -11", "-10 to -1", "-10 to -1", "0-9", "10+"],
    ),
    "negative_up": (case("change", 2, "-20", "-10", "5"), ["<-10", "-10 to -1", "0+"]),
    "not_numbers": (
        case("age_bands", 1, "'nan'::double", "'infinity'::double", "'-infinity'::double", "5", on_unmapped="suppress"),
        ["*", "*", "*", "[0,18)"],
    ),
    "not_numbers_below": (
        case("change", 2, "'nan'::double", "'infinity'::double", "'-infinity'::double", on_unmapped="suppress"),
        ["*", "*", "*"],
    ),
    "not_whole": (case("age", 1, "17.5", "17", on_unmapped="mark"), ["<unmapped>", "15-19"]),
    "null_kept": (case("age", 1, "7", "null"), ["5-9", None]),
    "null_suppressed": (case("age", 1, "7", "null", nulls="suppress"), ["5-9", "*"]),
    "leading_zeros": (case("zip", 2, "'02134'", "'02139'", "'21340'", "'21399'"), ["021**", "021**", "213**", "213**"]),
    "padded": (case("zip", 2, "2134", "21340"), ["021**", "213**"]),
    "wrong_width": (
        case("zip", 1, "'2134'", "'021345'", "''", "'02134'", on_unmapped="mark"),
        ["<unmapped>", "<unmapped>", "<unmapped>", "0213*"],
    ),
    "wrong_number": (
        case("zip", 1, "-2134", "213456", "2134", on_unmapped="mark"),
        ["<unmapped>", "<unmapped>", "0213*"],
    ),
    "no_width": (case("text_zip", 1, "'E11.9'", "'E1'", on_unmapped="mark"), ["E11*", "<unmapped>"]),
    "month": (case("day", 2, "date '1969-12-31'", "timestamp '2024-02-29 23:59:59'"), ["1969-12", "2024-02"]),
    "quarter": (case("day", 3, "date '1969-12-31'", "date '2024-01-01'"), ["1969-Q4", "2024-Q1"]),
    "decade": (case("day", 5, "date '1969-12-31'", "date '1970-01-01'"), ["1960-1969", "1970-1979"]),
    "century": (case("day", 6, "date '1899-12-31'", "date '2000-01-01'"), ["1800-1899", "2000-2099"]),
    "day_of_date": (case("day", 1, "date '1969-12-31'"), ["1969-12-31"]),
    "infinite_date": (
        case("day", 4, "date 'infinity'", "date '2024-01-01'", on_unmapped="mark"),
        ["<unmapped>", "2024"],
    ),
    "hour": (case("moment", 1, "timestamp '1969-12-31 23:30:00'"), ["1969-12-31 23:00"]),
    "part_of_day": (
        case("moment", 3, *(f"timestamp '1969-12-31 {t}'" for t in ("05:59:59", "06:00:00", "12:00:00", "18:00:00"))),
        ["night", "morning", "afternoon", "evening"],
    ),
    "iso_week": (case("week", 1, "date '2021-01-03'", "date '1969-12-31'"), ["2020-W53", "1970-W01"]),
    "weekday": (case("weekday", 1, "date '2024-02-25'", "date '2024-02-26'"), ["Sunday", "Monday"]),
    "tree": (case("job", 1, "'nurse'", "'O''Neil''s'", "'no'", "'7'"), ["Care", "Food", "Words", "Words"]),
    "tree_up": (case("job", 2, "'doctor'", "'cook'"), ["Care 'n' cure", "Trade"]),
    "tree_unmapped": (case("job", 1, "'pilot'", "'Nurse'", "null", on_unmapped="suppress"), ["*", "*", None]),
    "tree_of_numbers": (case("job", 1, "7", "8", on_unmapped="mark"), ["Words", "<unmapped>"]),
    "top_bottom": (case("salary", 1, "9.5", "10.0", "89.9", "90.0"), ["<10", "10.0", "89.9", "90+"]),
    "top_bottom_up": (
        case("salary", 2, "19", "20", "80", "'nan'::double", on_unmapped="mark"),
        ["<20", "20.0", "80+", "<unmapped>"],
    ),
    "rounded": (case("income", 1, "44", "45", "-45", "-46", "0"), ["40", "50", "-40", "-50", "0"]),
    "rounded_doubles": (
        case("income", 1, "44.999e0", "45e0", "1e300", "'nan'::double", on_unmapped="mark"),
        ["40", "50", "<unmapped>", "<unmapped>"],
    ),
    "rounded_twice": (case("income", 2, "44", "45", "47", "-55", "-56"), ["0", "100", "100", "0", "-100"]),
    "rounded_tiny": (case("income", 1, "cast(127 as tinyint)"), ["130"]),
    "lookup": (case("town", 1, "'alta'", "'oslo'", "'O''Hara'", "null"), ["north", "south", "so'uth", None]),
    "lookup_unmapped": (case("town", 1, "'Oslo'", on_unmapped="mark"), ["<unmapped>"]),
    "lookup_by_columns": (case("named_levels", 1, "39", "40", column="years"), ["30-39", "40-49"]),
    "rare": (case("rare", 1, "'west'", "'north'", "'nowhere'", on_unmapped="mark"), ["Other", "north", "<unmapped>"]),
    "extreme": (case("extreme", 1, "0", "2", "4"), ["<=0", "2", ">=3"]),
    "in_place": (case("{'kind': 'tree', 'tree': {'A': ['a', 'b']}}", 1, "'b'"), ["A"]),
    "without_hierarchy": (
        "select {{ veil.generalize('x', none, 1) }}, {{ veil.generalize('x', none, 0) }} from (select 'raw' as x)",
        ["raw"],
    ),
    "many_keys": (case(MANY_KEYS, 1, "299", "300", "600", on_unmapped="mark"), ["Low", "High", "<unmapped>"]),
    **{f"named_{position}": (case("age", 2, "7", column=name), ["0-9"]) for position, name in enumerate(HARD_NAMES)},
    "named_quote": ('select 1, {{ veil.generalize(\'a"b\', "age", 2) }} as label from (select 7 as "a""b")', ["0-9"]),
    "captured_name": (
        "select 1, {{ veil.generalize('level_0', 'town', 1) }} from (select 'oslo' as level_0)",
        ["south"],
    ),
    "grouped": (
        "select count(*), {{ veil.generalize('x', 'town', 1) }} as label from {{ ref('towns') }} as t (x) "
        "group by {{ veil.generalize('x', 'town', 1) }} order by label",
        ["so'uth", "south", "north"],
    ),
}

# a model costs a tenth of a second: a few of them hold all cases
CHUNKS = {f"good_{start}": list(GOOD)[start : start + 12] for start in range(0, len(GOOD), 12)}

# model: (SQL, words of the message)
FAILING: dict[str, tuple[str, str]] = {
    "fails_on_unmapped": (case("job", 1, "'Zed Q'"), "column `x` holds a value that hierarchy `job` does not map"),
    "fails_on_unmapped_lookup": (
        case("town", 1, "'Zed Q'"),
        "column `x` holds a value that hierarchy `town` does not map",
    ),
    "fails_on_open_range": (
        case("closed_bands", 1, "717171"),
        "column `x` holds a value that hierarchy `closed_bands`",
    ),
    "fails_on_not_whole": (case("age", 1, "71.7171"), "column `x` holds a value that hierarchy `age` does not map"),
    "fails_on_too_few": (
        "{{ veil.merge_rare(ref('few_areas'), 'area', 3) }}",
        "veil.merge_rare(): column `area` has fewer people than 3, the `minimum`, in all",
    ),
    "fails_on_too_few_at_the_ends": (
        "{{ veil.merge_extremes(ref('few_areas'), 'age', 2) }}",
        "veil.merge_extremes(): column `age` has no two ends apart of 2 people, the `minimum`",
    ),
    "fails_on_null": (case("age", 1, "null::integer", nulls="fail"), "column `x` holds NULL, and `nulls` is fail"),
    "fails_on_numbers_without_width": (
        case("text_zip", 1, "717171"),
        "column `x` is not text, so its leading zeros may be lost",
    ),
    "fails_on_double_codes": (case("zip", 1, "717.171"), "is neither text nor a whole number"),
    "fails_on_text_intervals": (case("age_bands", 1, "'Zed Q'"), "explicit cast is required"),
    "fails_on_text_dates": (case("day", 1, "'Zed Q'"), "explicit type casts"),
    "fails_on_missing_user": (
        "select {{ veil.generalize('user', 'job', 1, relation_alias='t') }} as x from (select 1) as t",
        '"user"',
    ),
}


AREAS = {
    "areas": {"north": 5, "south": 4, "east": 3, "west": 1, "islands": 1},
    "few_areas": {"west": 1, "islands": 1},
    "large_areas": {"north": 5, "south": 4},
}
# ann is in three areas, so `west`, `islands` and `coast` hold two people together, and only with `east` three
VISITS = (
    "('ann', 'west'), ('ann', 'islands'), ('ann', 'coast'), ('bea', 'coast'), ('bea', 'coast'), ('cis', 'east'), "
    + ("('dan', 'east'), ('eve', 'east'), ('cis', null), " + ", ".join(f"('p{i}', 'north')" for i in range(4)))
)

# model: (call, what must come out as {level_0: level_1})
FROM_DATA: dict[str, tuple[str, dict[str, str]]] = {
    "rare_areas": (
        "veil.merge_rare(ref('areas'), 'area', minimum=3)",
        {"north": "north", "south": "south", "east": "Other", "west": "Other", "islands": "Other"},
    ),
    "rare_areas_two": (
        "veil.merge_rare(ref('areas'), 'area', minimum='2', other='else')",
        {"north": "north", "south": "south", "east": "east", "west": "else", "islands": "else"},
    ),
    "rare_few": (
        "veil.merge_rare(ref('few_areas'), 'area', minimum=3, too_few='suppress')",
        {"west": "*", "islands": "*"},
    ),
    "rare_none": (
        "veil.merge_rare(ref('large_areas'), 'area', minimum=4)",
        {"north": "north", "south": "south"},
    ),
    "rare_people": (
        "veil.merge_rare(ref('visits'), 'area', minimum=3, unit='patient')",
        {"north": "north", "east": "Other", "coast": "Other", "west": "Other", "islands": "Other"},
    ),
    "rare_rows": (
        "veil.merge_rare(ref('visits'), 'area', minimum=2)",
        {"north": "north", "east": "east", "coast": "coast", "west": "Other", "islands": "Other"},
    ),
    # ages 0 to 4, 0 to 3, 0 to 2, 0, 0: five people are 0, and 4, 3, 3 are the three highest
    "extreme_ages": (
        "veil.merge_extremes(ref('areas'), 'age', minimum=3)",
        {"0": "<=0", "1": "1", "2": "2", "3": ">=3", "4": ">=3"},
    ),
    "extreme_top": (
        "veil.merge_extremes(ref('areas'), 'age', minimum=6, ends='top')",
        {"0": "0", "1": "1", "2": ">=2", "3": ">=2", "4": ">=2"},
    ),
    "extreme_few": (
        "veil.merge_extremes(ref('few_areas'), 'age', minimum=3, too_few='suppress')",
        {"0": "*"},
    ),
}

# name: (hierarchy, an expression of i from -1000 to 999)
EVERY_VALUE = {
    "age": ("age", "i"),
    "change": ("change", "i"),
    "share": ("share", "i / 1000.0"),
    "exact_share": ("share", "(i / 1000.0)::decimal(9, 3)"),
    "salary": ("salary", "i"),
    "income": ("income", "i"),
    "half_income": ("income", "i / 2"),
    "zip": ("zip", "lpad((i + 1000)::varchar, 5, '0')"),
    "day": ("day", "date '1970-01-01' + (i * 37)::integer"),
    "moment": ("moment", "timestamp '1970-01-01' + to_minutes(i * 17)"),
}

# what veil.hierarchy says of a hierarchy, without stopping the build: one model asks for all
PROBLEMS_OF = """
{% macro problems_of(given) %}
    {% set problems = [] %}
    {% set checked = veil._hierarchy(given, problems) %}
    {% do return(veil._literal(problems | length ~ " problems of " ~ checked.subject ~ ": " ~ problems | join(", "))) %}
{% endmacro %}
"""

# case: (what is asked, words of the message)
REFUSED: dict[str, tuple[str, list[str]]] = {
    "unknown_name": (
        "'agee'",
        ["1 problems of hierarchy `agee`: it is not declared under `vars: veil__hierarchies`; did you mean `age`?"],
    ),
    "unknown_kind": (
        "{'kind': 'interval'}",
        ["`kind` must be one of intervals, prefix,", "Got: 'interval'; did you mean `intervals`?"],
    ),
    "unknown_key": ("{'kind': 'prefix', 'keep': 3, 'widht': 5}", ["has no key `widht`; did you mean `width`?"]),
    "no_kind": ("{'keep': 3}", ["`kind` must be one of"]),
    "not_a_mapping": ("5", ["`hierarchy` must be a name or a mapping with `kind`. Got: 5"]),
    "widths_that_do_not_nest": ("{'kind': 'intervals', 'widths': [5, 12], 'range': [0, 60]}", ["Got: 12 after 5"]),
    "widths_without_range": ("{'kind': 'intervals', 'widths': [5]}", ["`range` must be [lowest, highest]"]),
    "width_zero": ("{'kind': 'intervals', 'widths': [0], 'range': [0, 60]}", ["`widths` must be above 0"]),
    "range_backwards": (
        "{'kind': 'intervals', 'widths': [5], 'range': [60, 0]}",
        ["with lowest < highest. Got: [60, 0]"],
    ),
    "widths_as_words": ("{'kind': 'intervals', 'widths': ['five'], 'range': [0, 60]}", ["plain numbers. Got: 'five'"]),
    "cut_too_fine": ("{'kind': 'intervals', 'cuts': [0, 1e-20]}", ["`cuts` must be made of plain numbers. Got: 1e-20"]),
    "too_many_bins": ("{'kind': 'intervals', 'widths': [2], 'range': [0, 9000]}", ["more than 1000 bins"]),
    "cuts_and_widths": ("{'kind': 'intervals', 'widths': [5], 'cuts': [1, 2]}", ["give either `widths` with `range`"]),
    "overlap": (
        "{'kind': 'intervals', 'cuts': [0, 18, 10]}",
        ["must rise, or bins are empty or overlap. Got: 10 after 18"],
    ),
    "empty_bin": (
        "{'kind': 'intervals', 'cuts': [0, 18, 18]}",
        ["must rise, or bins are empty or overlap. Got: 18 after 18"],
    ),
    "no_bin": ("{'kind': 'intervals', 'cuts': [0]}", ["`cuts` of level 1 make no bin"]),
    "cuts_that_do_not_nest": (
        "{'kind': 'intervals', 'cuts': [[0, 5, 9], [0, 7, 9]]}",
        ["level 2 must all be cuts of the level below", "Got: 7"],
    ),
    "gap": (
        "{'kind': 'intervals', 'cuts': [[0, 5, 9], [0, 5]]}",
        ["level 2 must begin and end as those of the level below, or leave a gap"],
    ),
    "not_whole_cuts": (
        "{'kind': 'intervals', 'cuts': [0, 0.5], 'whole': true}",
        ["`whole` is true, but not all cuts are whole numbers"],
    ),
    "truth_as_word": (
        "{'kind': 'intervals', 'cuts': [0, 5], 'open_above': 'yes'}",
        ["`open_above` must be true or false. Got: 'yes'"],
    ),
    "keep_all": ("{'kind': 'prefix', 'keep': [5, 3], 'width': 5}", ["`keep` must be less than `width`"]),
    "keep_rises": ("{'kind': 'prefix', 'keep': [2, 3]}", ["`keep` must fall from level to level. Got: 3 after 2"]),
    "keep_missing": ("{'kind': 'prefix'}", ["`keep` must list how many characters each level keeps"]),
    "weeks_in_months": ("{'kind': 'dates', 'levels': ['week', 'month']}", ["`month` is not a function of `week`"]),
    "unknown_unit": ("{'kind': 'dates', 'levels': ['moth']}", ["`levels` must be one of", "did you mean `month`?"]),
    "value_twice": ("{'kind': 'tree', 'tree': {'A': ['a'], 'B': ['a']}}", ["`tree` has the value 'a' twice"]),
    "uneven_tree": (
        "{'kind': 'tree', 'tree': {'A': ['a'], 'B': {'C': ['b']}}}",
        ["all values equally deep. 'b' lies under 2 groups"],
    ),
    "split_group": (
        "{'kind': 'tree', 'tree': {'A': {'X': ['a']}, 'B': {'X': ['b']}}}",
        ["the group 'X' under both 'A' and 'B'"],
    ),
    "norway": ("{'kind': 'tree', 'tree': {'Nordic': [false, 'se']}}", ["how YAML reads a bare yes, no, on, off"]),
    "empty_group": ("{'kind': 'tree', 'tree': {'A': ['a'], 'B': []}}", ["`tree` has the empty group 'B'"]),
    "star_below_the_top": ("{'kind': 'tree', 'tree': {'*': ['a']}}", ["a label below the top level must not be '*'"]),
    "no_tree": ("{'kind': 'tree', 'tree': ['a']}", ["`tree` must be a mapping of groups"]),
    "bottom_above_top": (
        "{'kind': 'top_bottom', 'bottom': 9, 'top': 5}",
        ["`bottom` must be below `top`. Got: 9 and 5"],
    ),
    "coding_outward": ("{'kind': 'top_bottom', 'top': [80, 90]}", ["each level must reach further in"]),
    "rounding_that_does_not_nest": ("{'kind': 'rounding', 'to': [10, 25]}", ["Got: 25 after 10"]),
    "rounding_to_parts": ("{'kind': 'rounding', 'to': 0.5}", ["`to` must be a whole number. Got: 0.5"]),
    "no_relation": ("{'kind': 'lookup'}", ["`relation` must be the name of a seed or model"]),
    "no_level_columns": (
        "{'kind': 'lookup', 'relation': ref('headless')}",
        ["has no columns level_0, level_1, …", "Declare `columns`"],
    ),
    "no_such_column": (
        "{'kind': 'lookup', 'relation': ref('towns'), 'columns': ['level_0', 'levle_1']}",
        ["has no column `levle_1`"],
    ),
    "bad_lookup": (
        "{'kind': 'lookup', 'relation': ref('broken')}",
        [
            "column `level_0`: values are listed twice (1)",
            "column `level_0`: values are missing (1)",
            "column `level_1`: labels lie under several labels of the next level, so the levels do not nest (1)",
            "column `level_2`: labels are missing (2)",
            "column `level_3`: the last column must hold one label, that of the top level, and holds more (2)",
        ],
    ),
    "headless": (
        "{'kind': 'lookup', 'relation': ref('headless'), 'columns': ['39', '30-39', '*']}",
        ["column `*`: rows hold the name of the column as their label: the file has no header"],
    ),
    "empty_lookup": ("{'kind': 'lookup', 'relation': ref('nothing')}", ["it has no rows (1)"]),
    "rare_without_minimum": (
        "{'kind': 'merge_rare', 'relation': ref('areas'), 'column': 'area', 'minimum': 1, 'other': '*'}",
        ["2 problems", "`minimum` must be 2 or more. Got: 1", "a label below the top level must not be '*'"],
    ),
    "claims_to_be_checked": (
        "{'kind': 'prefix', 'keep': 3, 'subject': 'x', 'top_level': 2, 'checked_by': 'me'}",
        ["has no key `subject`", "has no key `top_level`", "has no key `checked_by`"],
    ),
    "two_at_once": (
        "{'kind': 'intervals', 'cuts': [0, 9, 5], 'hwole': true}",
        ["2 problems", "has no key `hwole`", "Got: 5 after 9"],
    ),
}

# model: (call, words of the message)
REFUSED_CALLS: dict[str, tuple[str, list[str]]] = {
    "hierarchy": (
        "veil.hierarchy({'kind': 'intervals', 'cuts': [0, 9, 5], 'hwole': true})",
        ["veil.hierarchy(): the hierarchy written in place: 2 problems", "has no key `hwole`", "Got: 5 after 9"],
    ),
    "level_too_high": (
        "veil.generalize('x', 'age', 5)",
        ["`level` must be between 0 and 4, the top level of hierarchy `age`. Got: 5"],
    ),
    "level_as_word": (
        "veil.generalize('x', 'age', 'two')",
        ["veil.generalize(): column `x`, hierarchy `age`: `level` must be a whole number"],
    ),
    "level_negative": ("veil.generalize('x', 'age', -1)", ["`level` must be 0 or more. Got: -1"]),
    "unmapped_choice": (
        "veil.generalize('x', 'age', 1, on_unmapped='supress')",
        ["`on_unmapped` must be one of", "`suppress`?"],
    ),
    "rare_column_list": (
        "veil.merge_rare(ref('ages'), ['a'], 'five')",
        ["`column` must be a text", "`minimum` must be a whole number. Got: 'five'"],
    ),
    "extreme_ends": ("veil.merge_extremes(ref('ages'), 'order', 5, ends='botom')", ["did you mean `bottom`?"]),
    "table_without_values": (
        "veil.hierarchy_table('age')",
        ["has no list of values: give `relation` and `column`, or `values`"],
    ),
    "table_without_column": ("veil.hierarchy_table('age', ref('ages'))", ["give `relation` and `column`, or `values`"]),
}


@pytest.fixture(scope="module")
def built(shared_project: Project) -> tuple[Project, Result]:
    """All models of this module, built in one run."""
    project = shared_project
    project.configure(vars={"veil__hierarchies": HIERARCHIES}, models={"+materialized": "table"})
    project.seed(
        "towns",
        [dict(zip(("level_0", "level_1", "level_2"), row, strict=True)) for row in TOWNS],
        data_tests=["veil.hierarchy_is_nested"],
    )
    project.seed(
        "named_levels", [{"years": 39, "decade": "30-39", "all": "*"}, {"years": 40, "decade": "40-49", "all": "*"}]
    )
    project.seed("headless", [{"39": 40, "30-39": "40-49", "*": "*"}])
    for name, towns in AREAS.items():
        rows = [{"area": area, "age": position} for area, count in towns.items() for position in range(count)]
        project.seed(name, rows)
    for name, call in FROM_DATA.items():
        project.model(name, f"{{{{ {call[0]} }}}}")
    project.model("visits", "select * from (values " + VISITS + ") as t (patient, area)")
    project.seed(
        "people",
        [
            {"town": town, "job": job}
            for town in ("alta", "bodo", "oslo", "oslo")
            for job in ("nurse", "midwife", "pilot")
        ],
        columns=columns(
            {
                "town": {"role": "quasi_identifier", "hierarchy": "town"},
                "job": {"role": "quasi_identifier", "hierarchy": "job"},
            }
        ),
    )
    for name, extra in (("released", {"on_unmapped": "suppress"}), ("released_not", {})):
        policy = {"k": 2, "below_floor_because": "a test", "audience": "internal", "levels": {"town": 1, "job": 1}}
        project.model(
            name,
            "{{ veil.anonymize(ref('people')) }}",
            config={"materialized": "release", "meta": {"veil": policy | extra}},
        )
    project.properties(
        "seeds", "areas", columns=columns({"area": {"role": "quasi_identifier", "hierarchy": "rare"}, "age": "other"})
    )
    policy = {"k": 4, "below_floor_because": "a test", "audience": "internal", "levels": {"area": 1}}
    config = {"materialized": "release", "meta": {"veil": policy}}
    project.model("released_areas", "{{ veil.anonymize(ref('areas')) }}", config=config)
    hierarchies = {"zip": "text_zip", "padded": "zip", "age": "age", "seen": "day"}
    project.seed(
        "codes",
        [{"zip": 2134, "padded": 2134, "age": "young", "seen": "soon"}],
        columns=columns({name: {"role": "quasi_identifier", "hierarchy": h} for name, h in hierarchies.items()}),
    )
    project.model(
        "wrong_types",
        "{{ veil.anonymize(ref('codes')) }}",
        config={
            "materialized": "release",
            "meta": {"veil": {"audience": "internal", "levels": dict.fromkeys(hierarchies, 1)}},
        },
    )
    for chunk, names in CHUNKS.items():
        parts = [f"select '{name}' as name, c.* from ({GOOD[name][0]}) as c (position, label)" for name in names]
        texts = "cast(position as varchar) as position, cast(label as varchar) as label"
        project.model(chunk, f"select name, {texts} from (" + " union all ".join(parts) + ")")
    for name, (sql, _) in FAILING.items():
        project.model(name, sql)
    project.model("towns_table", "{{ veil.hierarchy_table('town') }}")
    project.model("jobs_table", "{{ veil.hierarchy_table('job') }}")
    project.model("ages_table", "{{ veil.hierarchy_table('age', values=[7, 42]) }}")
    project.model("column_table", "{{ veil.hierarchy_table('age', ref('ages'), 'order') }}")
    for name, (hierarchy, values) in EVERY_VALUE.items():
        project.model(f"every_{name}_value", f"select {values} as x from range(-1000, 1000) as t (i)")
        table = f"veil.hierarchy_table({hierarchy!r}, ref('every_{name}_value'), 'x', on_unmapped='suppress')"
        project.model(f"every_{name}", f"{{{{ {table} }}}}")
    project.model("ages", 'select * from (values (7), (7), (null), (42)) as t ("order")')
    refs = " -- " + " ".join(f"{{{{ ref('{name}') }}}}" for name in ("towns", "broken", "nothing", "headless", "areas"))
    project.macro("problems_of", PROBLEMS_OF)
    asked = [
        f"select '{name}' as name, {{{{ problems_of({given}) }}}} as problems" for name, (given, _) in REFUSED.items()
    ]
    project.model("refused", "{% if execute %}" + " union all ".join(asked) + "{% endif %}" + refs)
    for name, (call, _) in REFUSED_CALLS.items():
        project.model(f"refused_{name}", f"{{% if execute %}}{{{{ {call} }}}}{{% endif %}} -- {{{{ ref('ages') }}}}")
    broken = [
        ("a", "A", "AB", "*"),
        ("a", "A", "AB", "*"),
        (None, "B", "BC", "*"),
        ("c", "A", None, "+"),
        ("d", "D", None, "+"),
        ("e", "A", "EF", "*"),
    ]
    project.seed("broken", [{f"level_{i}": cell for i, cell in enumerate(row)} for row in broken])
    project.model("nothing", "select level_0, level_1 from {{ ref('towns') }} where false")
    return project, project.dbt("build")


@pytest.mark.parametrize(("chunk", "name"), [(chunk, name) for chunk, names in CHUNKS.items() for name in names])
def test_labels(built: tuple[Project, Result], chunk: str, name: str) -> None:
    project, result = built
    assert result.status(chunk) == "success", result.message(chunk)
    found = project.query(f"select label from {chunk} where name = '{name}' order by position")
    assert [label for (label,) in found] == GOOD[name][1]


@pytest.mark.parametrize("name", FAILING)
def test_refused_rows_name_the_column_and_no_value(built: tuple[Project, Result], name: str) -> None:
    _, result = built
    assert result.status(name) == "error"
    message = result.message(name)
    assert FAILING[name][1] in message
    assert "Zed" not in message.split("LINE 1")[0]
    assert "7171" not in message.split("LINE 1")[0]


def test_tables_list_values_levels_and_labels(built: tuple[Project, Result]) -> None:
    project, _ = built
    assert project.query("select value, level, label from ages_table order by all") == [
        ("42", 0, "42"),
        ("42", 1, "40-44"),
        ("42", 2, "40-49"),
        ("42", 3, "40-59"),
        ("42", 4, "*"),
        ("7", 0, "7"),
        ("7", 1, "5-9"),
        ("7", 2, "0-9"),
        ("7", 3, "0-19"),
        ("7", 4, "*"),
    ]
    assert project.query("from column_table order by all") == project.query("from ages_table order by all")
    assert sorted(project.query("select value, label from towns_table where level = 1")) == sorted(
        (value, label) for value, label, _ in TOWNS
    )
    assert project.query("select value, label from jobs_table where level = 2 order by all")[:2] == [
        ("7", "Trade"),
        ("O'Neil's", "Trade"),
    ]
    assert project.scalar("select count(*) from jobs_table") == 7 * 4


def test_a_lookup_that_nests_passes_its_test(built: tuple[Project, Result]) -> None:
    _, result = built
    assert result.status("veil_hierarchy_is_nested_towns_") == "pass"


@pytest.mark.parametrize("name", REFUSED)
def test_refused_hierarchies_say_what_and_how_to_mend(built: tuple[Project, Result], name: str) -> None:
    project, result = built
    assert result.status("refused") == "success", result.message("refused")
    for words in REFUSED[name][1]:
        assert words in project.scalar(f"select problems from refused where name = '{name}'")


@pytest.mark.parametrize("name", REFUSED_CALLS)
def test_refused_calls_stop_the_build(built: tuple[Project, Result], name: str) -> None:
    _, result = built
    assert result.status(f"refused_{name}") == "error"
    for words in REFUSED_CALLS[name][1]:
        assert words in result.message(f"refused_{name}")


def test_a_release_waits_for_its_lookup_and_counts_what_it_does_not_map(built: tuple[Project, Result]) -> None:
    project, result = built
    assert result.status("released") == "success", result.message("released")
    assert project.query("select town, job, count(*) from released group by all order by all") == [
        ("north", "*", 2),
        ("north", "Care", 4),
        ("south", "*", 2),
        ("south", "Care", 4),
    ]
    assert result.status("released_not") == "error"
    assert "4 rows have a `job` that its hierarchy does not know" in result.message("released_not")
    assert "pilot" not in result.message("released_not")


@pytest.mark.parametrize("name", FROM_DATA)
def test_every_merged_value_has_the_minimum_of_people(built: tuple[Project, Result], name: str) -> None:
    project, result = built
    assert result.status(name) == "success", result.message(name)
    assert dict(project.query(f"select level_0, level_1 from {name}")) == FROM_DATA[name][1]
    assert project.query(f"select distinct level_2 from {name}") == [("*",)]


def test_types_that_a_hierarchy_cannot_label_are_refused_together(built: tuple[Project, Result]) -> None:
    _, result = built
    message = result.message("wrong_types")
    assert "3 problems" in message
    assert (
        "`columns.zip` is INTEGER, and hierarchy `text_zip` is of kind `prefix`: its leading zeros are lost" in message
    )
    assert "hierarchy `age` is of kind `intervals`, which labels number columns" in message
    assert "hierarchy `day` is of kind `dates`, which labels date columns" in message


def labels(project: Project, name: str) -> dict[str, list[str]]:
    """``{value: [label of level 0, of level 1, …]}`` of one of EVERY_VALUE."""
    found: dict[str, list[str]] = {}
    for value, _, label in project.query(f"select value, level, label from every_{name} order by value, level"):
        found.setdefault(value, []).append(label)
    return found


@pytest.mark.parametrize("name", EVERY_VALUE)
def test_each_level_is_a_function_of_the_one_below(built: tuple[Project, Result], name: str) -> None:
    project, _ = built
    found = labels(project, name)
    assert len(found) == 2000
    assert len({len(of_value) for of_value in found.values()}) == 1
    parents: dict[tuple[int, str], str] = {}
    for of_value in found.values():
        assert of_value[-1] == "*"
        for level, (label, above) in enumerate(pairwise(of_value)):
            assert label == "*" or parents.setdefault((level, label), above) == above


@pytest.mark.parametrize("name", ["share", "exact_share"])
def test_the_label_of_a_bin_holds_the_value(built: tuple[Project, Result], name: str) -> None:
    project, _ = built
    for value, of_value in labels(project, name).items():
        for label in of_value[1:-1]:
            if 0 <= Decimal(value) < 1:
                lower, upper = label.strip("[)").split(",")
                assert Decimal(lower) <= Decimal(value) < Decimal(upper)
            else:
                assert label == "*"


@pytest.mark.parametrize("name", ["income", "half_income"])
def test_rounding_rounds_what_is_rounded(built: tuple[Project, Result], name: str) -> None:
    project, _ = built
    for value, of_value in labels(project, name).items():
        rounded = Fraction(value)
        for step, label in zip((10, 100, 300), of_value[1:-1], strict=True):
            rounded = floor(rounded / step + Fraction(1, 2)) * Fraction(step)
            assert label == str(rounded)


def test_a_release_can_merge_rare_values(built: tuple[Project, Result]) -> None:
    project, result = built
    assert result.status("released_areas") == "success", result.message("released_areas")
    sizes = project.query("select area, count(*) from released_areas group by area order by area")
    assert sizes == [("Other", 5), ("north", 5), ("south", 4)]
