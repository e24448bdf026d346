{#- What is true of the candidate as it was built, beside what went into it: one row of counts. -#}

{% macro _measure_candidate(candidate, policy) %}
    {%- if policy.dp is not none -%}
        {%- do return(veil._measure_dp_candidate(candidate)) -%}
    {%- endif -%}
    {%- set measured = veil._first_row(veil.measure_sql(candidate, policy)) -%}
    {%- do measured.update(veil._first_row(veil._refused_values_sql(candidate, policy))) -%}
    {%- do measured.update({'rows_out': measured.row_count, 'people_out': measured.people}) -%}
    {%- set input = veil._input_relation() -%}
    {%- do measured.update(veil._first_row(veil._people_sql(input, policy.unit, 'in'))) -%}
    {%- do measured.update({'suppressed_share': 1 - measured.people_out / measured.people_in if measured.people_in else 0}) -%}
    {%- do return(measured) -%}
{% endmacro %}

{#- Of a differentially private candidate nothing is measured but its rows: a count of people would be one more release. -#}
{% macro _measure_dp_candidate(candidate) %}
    {%- set measured = veil._first_row(veil._people_sql(candidate, none, 'out')) -%}
    {%- do measured.update({'people_in': none, 'people_out': none, 'rows_in': none, 'classes': none, 'k': none, 'suppressed_share': none}) -%}
    {%- do return(measured) -%}
{% endmacro %}

{#- The row of a query that returns one, as a mapping. -#}
{% macro _first_row(sql) %}
    {%- set table = run_query(sql) -%}
    {%- set row = {} -%}
    {%- for name in table.column_names -%}
        {%- do row.update({name: table.rows[0][name]}) -%}
    {%- endfor -%}
    {%- do return(row) -%}
{% endmacro %}

{% macro _people_sql(relation, unit, side) -%}
select
    count(*) as rows_{{ side }},
    {{ "count(*)" if unit is none else "count(distinct measured." ~ veil._quote(unit) ~ ")" }} as people_{{ side }},
    {{ 0 if unit is none else "count(*) - count(measured." ~ veil._quote(unit) ~ ")" }} as rows_without_unit
from {{ relation }} as measured
{%- endmacro %}

{#- Rows that anonymize lets through for the gate to count: a value the hierarchy does not know, NULL where it is refused. -#}
{% macro _refused_values_sql(candidate, policy) -%}
{%- set label = veil._literal(veil._unmapped_label()) -%}
select
    {%- for name in policy.quasi_identifiers %}
    {%- if policy.recoding == 'local' or policy.levels[name] > 0 %}
    count(case when candidate.{{ veil._quote(name) }} = {{ label }} then 1 end) as unmapped_{{ loop.index0 }},
    {%- else %}
    0 as unmapped_{{ loop.index0 }}, -- level 0 keeps the value, whatever it is
    {%- endif %}
    count(case when candidate.{{ veil._quote(name) }} is null then 1 end) as nulls_{{ loop.index0 }},
    {%- endfor %}
    count(*) as row_count
from {{ candidate }} as candidate
{%- endmacro %}

{#- The one relation a release is made of. The share of people left out can be measured against nothing else. -#}
{% macro _input_relation() %}
    {%- set inputs = veil._inputs(model) -%}
    {%- if inputs | length != 1 -%}
        {%- do veil._fail('release', ["a release has one input whose columns carry roles, so that the people left out can be counted. Got: "
            ~ (inputs | map(attribute='name') | join(", ") or "none") ~ ". Join them in a staging model"], "model `" ~ model.name ~ "`") -%}
    {%- endif -%}
    {%- do return(veil._relation_of(inputs[0])) -%}
{% endmacro %}
