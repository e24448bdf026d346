"""The level search and local recoding as UDFs.

A statement of ``macros/levels`` counts the rows of the input by its quasi-identifiers, labels the values that occur at
every level, and hands both over as two lists, beside a request in JSON: the policy and what is asked. So the data goes
through SQL that anyone can read, and the search sees exactly what the statement sees.

An answer of ``veil_find_levels`` is JSON of counts, figures, column names and levels. That of ``veil_recode`` holds
values: it is joined to the rows they came from within the same statement.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_veil import criteria as models
from dbt_veil.frequency import Column, IntArray, Sensitive, Table, numbered_groups
from dbt_veil.recoding import recode
from dbt_veil.search import Answer, Policy, Release, SearchError, nearest, search
from dbt_veil.udf import Session, Udf

Request = Mapping[str, Any]
Texts = list[str | None]
Places = dict[str | None, list[str | None]]

_ROWS = "STRUCT(q VARCHAR[], s VARCHAR[], unit_key VARCHAR, row_count BIGINT)[]"
_LABELS = 'STRUCT(source VARCHAR, "position" INTEGER, labels VARCHAR[])[]'
_RECODED = "STRUCT(tuple_values VARCHAR[], tuple_levels INTEGER[])[]"
_RECODED_TYPE = pa.list_(pa.struct([("tuple_values", pa.list_(pa.string())), ("tuple_levels", pa.list_(pa.int32()))]))


def udfs(session: Session) -> Sequence[Udf]:
    """``veil_find_levels(request, rows, labels)`` gives JSON, ``veil_recode`` of the same gives levels by tuple.

    A request with a ``once`` (invocation and model) is answered once, so that the levels a model is built with are
    those that are recorded.
    """
    answered: dict[str, tuple[str, str]] = {}

    def find_levels(requests: pa.ChunkedArray, rows: pa.ChunkedArray, labels: pa.ChunkedArray) -> pa.Array:
        def one(text: str, own_rows: pa.StructArray, own_labels: pa.StructArray) -> str:
            request = json.loads(text)
            once = request.get("once")
            if once and answered.get(once, ("", ""))[0] == text:
                return answered[once][1]
            try:
                answer = find(Source.read(request, own_rows, own_labels), request)
            except SearchError as error:
                answer = {"problem": str(error)}
            if once:
                answered[once] = (text, json.dumps(answer))
            return json.dumps(answer)

        return pa.array(_each(one, requests, rows, labels), type=pa.string())

    def recode_tuples(requests: pa.ChunkedArray, rows: pa.ChunkedArray, labels: pa.ChunkedArray) -> pa.Array:
        def one(text: str, own_rows: pa.StructArray, own_labels: pa.StructArray) -> list[dict[str, Any]]:
            request = json.loads(text)
            return recoded(Source.read(request, own_rows, own_labels), request)

        return pa.array(_each(one, requests, rows, labels), type=_RECODED_TYPE)

    parameters = ("VARCHAR", _ROWS, _LABELS)
    return [
        Udf("veil_find_levels", find_levels, parameters, "VARCHAR", volatile=True, sees_null=True),
        Udf("veil_recode", recode_tuples, parameters, _RECODED, volatile=True, sees_null=True),
    ]


def _each(
    answer: Callable[[str, pa.StructArray, pa.StructArray], Any],
    requests: pa.ChunkedArray,
    rows: pa.ChunkedArray,
    labels: pa.ChunkedArray,
) -> list[Any]:
    """The answer of each row of arguments; a list that is NULL is empty. No text of an error holds a value."""
    try:
        return [
            answer(requests[position].as_py(), _items(rows, position), _items(labels, position))
            for position in range(len(requests))
        ]
    except SearchError:
        raise
    except Exception as error:
        raise RuntimeError(f"the level search stopped on a {type(error).__name__}") from None


def _items(lists: pa.ChunkedArray, position: int) -> pa.StructArray:
    items = lists[position].values
    return pa.array([], type=lists.type.value_type) if items is None else items


@dataclass(frozen=True, eq=False)
class Source:
    """The frequency table of a request, with the texts behind its numbers.

    Attributes:
        table: the frequency table.
        texts: values of each quasi-identifier, as numbered in the table, by name.
        sensitive: values of each sensitive column, as numbered in the table, by name.
        places: for each criterion, what lies behind a sensitive value: its number on a line or its labels from level
            1 up; empty where the criterion does not ask.
    """

    table: Table
    texts: dict[str, Texts]
    sensitive: dict[str, Texts]
    places: list[Places]

    @classmethod
    def read(cls, request: Request, rows: pa.StructArray, labels: pa.StructArray) -> Source:
        """Number the values of the rows.

        Args:
            request: ``quasi_identifiers`` and ``sensitive`` (names), ``unit`` (whether there is one), ``unmapped``
                (the label that is refused, if any is), and the policy's ``criteria``.
            rows: (rows,); values of the quasi-identifiers and of the sensitive columns, the person and the number of
                rows, everything as text.
            labels: (labels,); for ``source`` q, the labels of a value of the quasi-identifier at ``position`` on every
                level from 0, at least for every value that occurs; for ``source`` s, a sensitive value and its places
                for the criterion at ``position``. Positions count from 1.

        Raises:
            SearchError: a hierarchy does not know a value, or does not nest.
        """
        names, sensitive_names = request["quasi_identifiers"], request["sensitive"]
        count = len(rows)
        quasi = _split(rows.field("q"), len(names), count)
        listed = _listed(labels)
        columns, codes, texts = [], [], {}
        for position, (name, own) in enumerate(zip(names, quasi, strict=True), start=1):
            numbers, values = _numbered(own)
            columns.append(_column(name, listed.get(("q", position), {}), values, request.get("unmapped")))
            codes.append(numbers)
            texts[name] = values
        row_count = rows.field("row_count").to_numpy(zero_copy_only=False).astype(np.int64)
        units = _numbered(rows.field("unit_key"), null_last=False)[0] if request["unit"] else None
        tuple_of_row, first = numbered_groups(codes, [max(len(texts[name]), 1) for name in names], count)
        sensitive, value_texts = [], {}
        for name, own in zip(sensitive_names, _split(rows.field("s"), len(sensitive_names), count), strict=True):
            numbers, value_texts[name] = _numbered(own)
            sensitive.append(_sensitive(name, tuple_of_row, len(first), numbers, value_texts[name], row_count, units))
        people, repeated = _people(tuple_of_row, len(first), row_count, units)
        table = Table(
            columns=tuple(columns),
            values=np.stack([own[first] for own in codes], axis=1) if codes else np.zeros((len(first), 0), np.int64),
            people=people,
            rows=np.bincount(tuple_of_row, weights=row_count, minlength=len(first)).astype(np.int64),
            sensitive=tuple(sensitive),
            repeated_tuple=repeated[0],
            repeated_unit=repeated[1],
        )
        criteria = request["policy"].get("criteria", [])
        places = [listed.get(("s", position), {}) for position in range(1, len(criteria) + 1)]
        return cls(table, texts, value_texts, places)

    def policy(self, request: Request) -> Policy:
        """The policy of a request: ``k``, ``suppress_up_to``, ``criteria``."""
        asked = request["policy"]
        return Policy(
            k=int(asked["k"]),
            criteria=tuple(
                self._criterion(one, places) for one, places in zip(asked.get("criteria", []), self.places, strict=True)
            ),
            suppress_up_to=float(asked.get("suppress_up_to") or 0),
        )

    def _criterion(self, asked: Mapping[str, Any], places: Places) -> models.Criterion:
        column, measure, kind = asked["column"], asked["measure"], asked.get("kind")
        threshold = float(asked["threshold"])
        if measure == "l" and kind == "recursive":
            return models.RecursiveDiversity(column, threshold, float(asked["c"]))
        if measure == "l":
            return (models.DistinctDiversity if kind == "distinct" else models.EntropyDiversity)(column, threshold)
        if measure == "beta":
            return models.BetaLikeness(column, threshold, enhanced=kind == "enhanced")
        if measure == "delta_disclosure":
            return models.DeltaDisclosure(column, threshold)
        if measure == "alpha":
            return models.AlphaAnonymity(column, threshold)
        if measure == "t":
            return self._closeness(models.Closeness(column, threshold, str(kind)), asked.get("order"), places)
        raise SearchError(f"the level search does not know the measure `{measure}`")

    def _closeness(self, model: models.Closeness, order: object, places: Places) -> models.Closeness:
        values = self.sensitive[model.column]
        if model.distance == "hierarchical":
            return replace(model, groups=_groups([places[value][1:] for value in values]))
        if model.distance == "ordered" and isinstance(order, list):
            ranks = {str(value): float(rank) for rank, value in enumerate(order)}
            listed = [ranks.get(value, np.nan) if value is not None else np.nan for value in values]
            return replace(model, positions=np.array(listed), span=float(len(order) - 1))
        if model.distance in ("ordered", "numeric"):
            found = [places[value][1] for value in values]
            return replace(model, positions=np.array([np.nan if one is None else float(one) for one in found]))
        return model


def find(source: Source, request: Request) -> dict[str, Any]:
    """Answer what is asked: ``find`` the best levels, ``sweep`` over policies, or whether given levels ``hold``."""
    names = list(request["quasi_identifiers"])
    policy = source.policy(request)
    if request["ask"] == "hold":
        now, best = nearest(source.table, policy, request["levels"])
        return {"holds": now is not None, "nearest": None if best is None else _ordered(best.levels, names)}
    options = dict(request.get("options") or {})
    if request["ask"] == "sweep":
        points = [_point(source.table, policy, names, options, point) for point in request["points"]]
        return {"points": points, "report": _table(points)}
    answer = search(source.table, policy, progress=_say, **options)
    return {
        "levels": _ordered(answer.releases[0].levels, names),
        "exact": answer.exact,
        "releases": [_described(release, names) for release in answer.releases],
        "report": report(answer, names, str(options.get("metric", "loss"))),
    }


def recoded(source: Source, request: Request) -> list[dict[str, Any]]:
    """Recode locally: for each tuple of values that is released, as text, its levels."""
    names = list(request["quasi_identifiers"])
    result = recode(source.table, source.policy(request), progress=_say, **dict(request.get("options") or {}))
    rounds = [[levels[name] for name in names] for levels in result.rounds]
    values = source.table.values[:, [source.table.names.index(name) for name in names]].tolist()
    texts = [source.texts[name] for name in names]
    return [
        {"tuple_values": [text[value] for text, value in zip(texts, own, strict=True)], "tuple_levels": rounds[number]}
        for own, number in zip(values, result.round_of_tuple.tolist(), strict=True)
        if number >= 0
    ]


def report(answer: Answer, names: list[str], metric: str) -> str:
    """What a reader sees: the releases best first, the search's own figures, and YAML to paste."""
    lines = [_table([_described(release, names) for release in answer.releases])]
    feasible = "" if answer.feasible is None else f", {answer.feasible} feasible"
    minimal = "" if answer.minimal is None else f" ({len(answer.minimal)} minimal)"
    lines.append(
        f"\n{answer.nodes} nodes, {answer.checked} checked, {answer.measured} more measured{feasible}{minimal}, "
        f"{answer.seconds:.2f} s, by {metric}"
    )
    if not answer.exact:
        lines.append(
            "best effort: the lattice is too large for an exact answer, or time ran out. "
            "Cap it with `max_level` or `min_level`, or allow more `time_limit`"
        )
    best = _ordered(answer.releases[0].levels, names)
    text = ", ".join(f"{_yaml_key(name)}: {level}" for name, level in best.items())
    lines.append(f"\nthe best, to paste:\n\n    config:\n      meta:\n        veil:\n          levels: {{{text}}}\n")
    return "\n".join(lines)


def _point(
    table: Table, policy: Policy, names: list[str], options: Mapping[str, Any], point: Mapping[str, Any]
) -> dict[str, Any]:
    """One point of a sweep; a point without a feasible node has no figures."""
    own = replace(policy, k=int(point["k"]), suppress_up_to=float(point["suppress_up_to"]))
    cap = point.get("max_level")
    caps = {} if cap is None else {name: min(int(cap), column.top) for name, column in _by_name(table).items()}
    asked = {"k": own.k, "suppress_up_to": own.suppress_up_to} | ({} if cap is None else {"max_level": int(cap)})
    try:
        best = search(table, own, **{**options, "max_level": {**caps, **options.get("max_level", {})}}).releases[0]
    except SearchError:
        return {**asked, "levels": None}
    return {**asked, **_described(best, names)}


def _by_name(table: Table) -> dict[str, Column]:
    return {column.name: column for column in table.columns}


def _described(release: Release, names: list[str]) -> dict[str, Any]:
    everyone = release.people + release.suppressed_people
    return {
        "levels": _ordered(release.levels, names),
        "suppressed_share": release.suppressed_people / everyone,
        "classes": release.classes,
        "smallest": release.smallest,
        "loss": release.loss,
        "discernibility": release.discernibility,
        "average_class": release.average_class,
        **release.figures,
    }


def _ordered(levels: Mapping[str, int], names: list[str]) -> dict[str, int]:
    return {name: levels[name] for name in names}


def _table(entries: list[dict[str, Any]]) -> str:
    """Entries as aligned text, one a line."""
    header = list(dict.fromkeys(name for entry in entries for name in entry))
    cells = [header, *([_cell(name, entry.get(name)) for name in header] for entry in entries)]
    widths = [max(len(row[position]) for row in cells) for position in range(len(header))]
    lines = ("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "none feasible" if name == "levels" else ""
    if isinstance(value, dict):
        return " ".join(f"{key}:{level}" for key, level in value.items())
    if name.startswith("supp"):
        return f"{100 * value:.2f} %"
    return f"{value:.0f}" if float(value) == int(value) else f"{value:.6g}"


def _yaml_key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() and name.lower() not in _YAML_WORDS else json.dumps(name)


_YAML_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def _say(text: str) -> None:
    print(f"veil: {text}", file=sys.stderr, flush=True)


def _split(lists: pa.ListArray, width: int, count: int) -> list[pa.Array]:
    """The columns of a list array whose lists all have ``width`` items."""
    flat = lists.flatten()
    return [flat.take(pa.array(np.arange(position, count * width, width))) for position in range(width)]


def _numbered(texts: pa.Array, *, null_last: bool = True) -> tuple[IntArray, Texts]:
    """Numbers for texts in their order, and the texts. NULL is numbered last, or -1 and not among the texts."""
    encoded = pc.dictionary_encode(texts)
    known: list[str] = encoded.dictionary.to_pylist()
    order = sorted(range(len(known)), key=known.__getitem__)
    rank = np.empty(len(known) + 1, dtype=np.int64)
    rank[order] = np.arange(len(known))
    rank[-1] = len(known) if null_last else -1
    numbers = rank[encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)]
    missing: Texts = [None] if null_last and texts.null_count else []
    return numbers, [known[position] for position in order] + missing


def _listed(labels: pa.StructArray) -> dict[tuple[str, int], Places]:
    """Labels by source and position, then by value."""
    listed: dict[tuple[str, int], Places] = {}
    columns = (labels.field(name).to_pylist() for name in ("source", "position", "labels"))
    for source, position, own in zip(*columns, strict=True):
        listed.setdefault((source, position), {}).setdefault(own[0], own)
    return listed


def _column(name: str, labels: Places, values: Texts, unmapped: str | None) -> Column:
    """A quasi-identifier with the labels of its values, and of those that only its hierarchy knows."""
    present = [labels[value] for value in values]
    unknown = 0 if unmapped is None else sum(unmapped in own[1:] for own in present)
    if unknown:
        raise SearchError(
            f"`{name}` holds {unknown} values that its hierarchy does not know. Add them to it, "
            f"or say `on_unmapped: suppress`"
        )
    seen = set(values)
    unseen = [own for value, own in labels.items() if value not in seen]
    depth = len(next(iter(labels.values()), [None]))
    try:
        return Column.from_labels(
            name,
            [[own[level] for own in present] for level in range(depth)],
            [[own[level] for own in unseen] for level in range(depth)],
        )
    except ValueError as error:
        raise SearchError(str(error)) from None


def _people(
    place_of_row: IntArray, places: int, row_count: IntArray, units: IntArray | None
) -> tuple[IntArray, tuple[IntArray, IntArray]]:
    """People with one place alone, per place; and the (place, person) pairs of those with several."""
    if units is None:
        none = np.zeros(0, dtype=np.int64)
        people = np.bincount(place_of_row, weights=row_count, minlength=places).astype(np.int64)
        return people, (none, none)
    seen = units >= 0
    pairs = np.unique(np.stack([units[seen], place_of_row[seen]], axis=1), axis=0)
    own = np.bincount(pairs[:, 0], minlength=int(units.max(initial=0)) + 1)[pairs[:, 0]]
    once, several = pairs[own == 1], pairs[own > 1]
    return np.bincount(once[:, 1], minlength=places).astype(np.int64), (several[:, 1], several[:, 0])


def _sensitive(
    name: str,
    tuple_of_row: IntArray,
    tuples: int,
    values: IntArray,
    texts: Texts,
    row_count: IntArray,
    units: IntArray | None,
) -> Sensitive:
    cell_of_row, first = numbered_groups(
        [tuple_of_row, values], [max(tuples, 1), max(len(texts), 1)], len(tuple_of_row)
    )
    people, repeated = _people(cell_of_row, len(first), row_count, units)
    return Sensitive(
        name=name,
        cell_tuple=tuple_of_row[first],
        cell_value=values[first],
        cell_people=people,
        values=len(texts),
        missing=texts.index(None) if None in texts else -1,
        repeated_cell=repeated[0],
        repeated_unit=repeated[1],
    )


def _groups(paths: list[list[str | None]]) -> tuple[IntArray, ...]:
    """Number of each value's group, for each inner level of its hierarchy."""
    groups = []
    for level in range(len(paths[0]) if paths else 0):
        known: dict[str | None, int] = {}
        groups.append(np.array([known.setdefault(path[level], len(known)) for path in paths], dtype=np.int64))
    return tuple(groups)
