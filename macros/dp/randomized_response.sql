{#- Local differential privacy: the expression of a record's answer, true with a probability that epsilon sets and any other
    value otherwise. The policy declares it as a query of mechanism `randomized_response`; what it costs is each record's own.

    Two values, several, or a number within bounds, which is rounded at random to one of the bounds so that its mean is kept.
    The draw picks from a list and is not compared case by case, for a random expression in a CASE is drawn anew for each. -#}

{% macro randomized_response(column, query, values=none, bounds=none, relation_alias=none) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set subject = "model `" ~ model.name ~ "`" -%}
    {%- set problems = [] -%}
    {%- do veil._text(column, 'column', problems) -%}
    {%- if (values is none) == (bounds is none) -%}
        {%- do problems.append("give `values`, the public list of answers, or `bounds` for a number: one of them") -%}
    {%- elif values is not none and veil._dp_values(values, 'values', problems) | length == 1 -%}
        {%- do problems.append(veil._must_be('values', "a list of at least two", values)) -%}
    {%- elif bounds is not none -%}
        {%- set bounds = veil._dp_range(bounds, 'bounds', problems) -%}
    {%- endif -%}
    {%- if config.get('materialized') != 'release' -%}
        {%- do problems.append("a randomized answer must be drawn once and kept: set `materialized: release`. Got: '" ~ config.get('materialized') ~ "'") -%}
    {%- endif -%}
    {%- set declared = veil._dp_query(query, none, none, problems) -%}
    {%- if declared and declared.get('mechanism') != 'randomized_response' -%}
        {%- do problems.append("`dp.queries` declares `" ~ declared.name ~ "` with the mechanism " ~ (declared.get('mechanism') or 'none') ~ ", not randomized_response") -%}
    {%- elif declared and (values or bounds) and declared.get('categories') != (2 if bounds else values | length) -%}
        {%- do problems.append("`dp.queries` declares " ~ declared.get('categories', 'no') ~ " categories for `" ~ declared.name ~ "`, and there are "
            ~ (2 if bounds else values | length)) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('randomized_response', problems, subject) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('randomized_response', 'veil')(veil._quote(column, relation_alias), declared.name, values, bounds)) -%}
{% endmacro %}

{% macro default__randomized_response(value, query, values, bounds) %}
    {%- do veil._fail('randomized_response', ["the answers are drawn by Veil's UDFs, which run on DuckDB. Got: '" ~ target.type ~ "'"]) -%}
{% endmacro %}

{% macro duckdb__randomized_response(value, query, values, bounds) -%}
{%- set mechanism = veil._mechanisms()[query] -%}
{%- set answers = veil._dp_literals(bounds if bounds is not none else values) -%}
{%- set truth -%}
{%- if bounds is not none -%}
case when {{ value }} is null or isnan(cast({{ value }} as double)) then null else cast(veil_random_key(0) < least(greatest((cast({{ value }} as double) - {{ bounds[0] }}) / {{ bounds[1] - bounds[0] }}, 0), 1) * 9223372036854775808 as bigint) end
{%- else -%}
list_position({{ answers }}, {{ value }}) - 1
{%- endif -%}
{%- endset -%}
({{ answers }})[veil_randomized_response({{ veil._dp_reservation() }}, '{{ query }}', {{ truth }}, {{ mechanism.categories }}, {{ mechanism.epsilon }}) + 1]
{%- endmacro %}
