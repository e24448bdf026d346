{#- The values of a column that an attacker with a list of candidates recovers: plain or salted digests of them, in any
    form in which people store digests. One row a method, with counts and no value. -#}

{% macro resists_dictionary(relation, column, candidates, candidate_column, salts=none) %}
    {%- set problems = [] -%}
    {%- do veil._text(column, 'column_name', problems) -%}
    {%- do veil._text(candidate_column, 'candidate_column', problems) -%}
    {%- set salts = veil._names(salts, 'salts', problems) if salts else [] -%}
    {%- if problems -%}
        {%- do veil._fail('resists_dictionary', problems) -%}
    {%- endif -%}
    {%- do veil._require_udf('resists_dictionary', 'veil_recovered') -%}
    {%- do return(adapter.dispatch('resists_dictionary', 'veil')(relation, column, candidates, candidate_column, salts)) -%}
{% endmacro %}

{% macro default__resists_dictionary(relation, column, candidates, candidate_column, salts) -%}
{%- set known_salts = [] -%}
{%- for salt in salts -%}
    {%- do known_salts.append(veil._literal(salt)) -%}
{%- endfor -%}
{{ veil._released_values(relation, column) }}

candidates as (

    select distinct cast(candidate_rows.{{ veil._quote(candidate_column) }} as varchar) as candidate
    from {{ candidates }} as candidate_rows
    where candidate_rows.{{ veil._quote(candidate_column) }} is not null

),

attack as (

    select unnest(veil_recovered(
        (select coalesce(list(candidates.candidate), []) from candidates),
        (select coalesce(list(released.released_value), []) from released),
        cast([{{ known_salts | join(", ") }}] as varchar[])
    )) as found

),

validation_errors as (

    select
        attack.found.method as method,
        attack.found.recovered as values_recovered,
        (select count(*) from released) as values_released
    from attack

)

select
    validation_errors.method,
    validation_errors.values_recovered,
    validation_errors.values_released
from validation_errors
{%- endmacro %}

{% test resists_dictionary(model, candidates, candidate_column, column_name=none, salts=none) %}
    {{- veil.resists_dictionary(model, column_name, candidates, candidate_column, salts) }}
{% endtest %}
