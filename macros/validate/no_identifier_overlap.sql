{#- Released values that are, or hold, an identifier of the source: one row for each pair of columns, with counts. -#}

{% macro no_identifier_overlap(relation, source, identifiers, columns=none, shortest=4) %}
    {%- set problems = [] -%}
    {%- set identifiers = veil._names(identifiers, 'identifiers', problems) -%}
    {%- set shortest = veil._integer(shortest, 'shortest', problems, minimum=1) -%}
    {%- set columns = veil._given_columns(columns, relation, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('no_identifier_overlap', problems) -%}
    {%- endif -%}
    {%- if not execute -%}
        {%- do return('select 1') -%}
    {%- endif -%}
    {%- set columns = columns if columns is not none else adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
    {%- do return(adapter.dispatch('no_identifier_overlap', 'veil')(relation, source, identifiers, columns, shortest)) -%}
{% endmacro %}

{% macro default__no_identifier_overlap(relation, source, identifiers, columns, shortest) -%}
with released_rows as (

    select * from {{ relation }}

),

released as (

    {%- for name in columns %}
    select distinct
        {{ veil._literal(name) }} as released_column,
        lower(cast(released_rows.{{ veil._quote(name) }} as {{ dbt.type_string() }})) as released_value
    from released_rows
    where released_rows.{{ veil._quote(name) }} is not null
    {{- "\n    union all" if not loop.last }}
    {%- endfor %}

),

identifiers as (

    {%- for name in identifiers %}
    select distinct
        {{ veil._literal(name) }} as identifier_column,
        lower(cast(source_rows.{{ veil._quote(name) }} as {{ dbt.type_string() }})) as identifier_value
    from {{ source }} as source_rows
    where length(trim(cast(source_rows.{{ veil._quote(name) }} as {{ dbt.type_string() }}))) > 0
    {{- "\n    union all" if not loop.last }}
    {%- endfor %}

),

-- equal values are found by a hash join, values inside others by trying each pair
found as (

    select
        released.released_column,
        identifiers.identifier_column,
        released.released_value,
        'equal' as overlap
    from released
    inner join identifiers
        on released.released_value = identifiers.identifier_value
    union all
    select
        released.released_column,
        identifiers.identifier_column,
        released.released_value,
        'contained' as overlap
    from released
    inner join identifiers
        on length(released.released_value) > length(identifiers.identifier_value)
        and position(identifiers.identifier_value in released.released_value) > 0
    where length(identifiers.identifier_value) >= {{ shortest }}

),

validation_errors as (

    select
        found.released_column,
        found.identifier_column,
        found.overlap,
        count(distinct found.released_value) as released_values
    from found
    group by found.released_column, found.identifier_column, found.overlap

)

select
    validation_errors.released_column,
    validation_errors.identifier_column,
    validation_errors.overlap,
    validation_errors.released_values
from validation_errors
{%- endmacro %}

{% test no_identifier_overlap(model, source, identifiers, columns=none, column_name=none, shortest=4) %}
    {{- veil.no_identifier_overlap(model, source, identifiers, [column_name] if column_name is not none else columns, shortest) }}
{% endtest %}
