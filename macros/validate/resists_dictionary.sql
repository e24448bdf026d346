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
    {%- do veil._require_udf('resists_dictionary', 'veil_guesses') -%}
    {%- do return(adapter.dispatch('resists_dictionary', 'veil')(relation, column, candidates, candidate_column, salts)) -%}
{% endmacro %}

{% macro default__resists_dictionary(relation, column, candidates, candidate_column, salts) -%}
{%- set known_salts = [] -%}
{%- for salt in salts -%}
    {%- do known_salts.append(veil._literal(salt)) -%}
{%- endfor -%}
with released as (

    select distinct cast(released_rows.{{ veil._quote(column) }} as varchar) as released_value
    from {{ relation }} as released_rows
    where released_rows.{{ veil._quote(column) }} is not null

),

lengths as (

    select coalesce(list(distinct length(released.released_value)), cast([] as bigint[])) as released_lengths
    from released

),

candidates as (

    select distinct cast(candidate_rows.{{ veil._quote(candidate_column) }} as varchar) as candidate
    from {{ candidates }} as candidate_rows
    where candidate_rows.{{ veil._quote(candidate_column) }} is not null

),

guesses as (

    select unnest(veil_guesses(
        candidates.candidate, cast([{{ known_salts | join(", ") }}] as varchar[]), lengths.released_lengths
    )) as guess
    from candidates
    cross join lengths

),

recovered as (

    select
        released.released_value,
        min(guesses.guess.method) as method
    from released
    inner join guesses
        on released.released_value = guesses.guess.value
    group by released.released_value

),

validation_errors as (

    select
        recovered.method,
        count(*) as values_recovered,
        (select count(*) from released) as values_released
    from recovered
    group by recovered.method

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
