{#- The kinds of personal data that are found in text columns: one row for each column and kind, with the count of rows. -#}

{% macro no_pii(relation, columns=none, kinds=none) %}
    {%- set problems = [] -%}
    {%- set kinds = veil._names(kinds, 'kinds', problems) if kinds else [] -%}
    {%- set columns = veil._given_columns(columns, relation, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('no_pii', problems) -%}
    {%- endif -%}
    {%- if not execute -%}
        {%- do return('select 1') -%}
    {%- endif -%}
    {%- do veil._require_udf('no_pii', 'veil_pii_kinds') -%}
    {%- set columns = columns if columns is not none else veil._text_columns(relation) -%}
    {%- do return(adapter.dispatch('no_pii', 'veil')(relation, columns, kinds)) -%}
{% endmacro %}

{% macro default__no_pii(relation, columns, kinds) -%}
with released as (

    select * from {{ relation }}

),

found as (

    {%- for name in columns %}
    select
        {{ veil._literal(name) }} as column_name,
        unnest(veil_pii_kinds(cast(released.{{ veil._quote(name) }} as varchar), {{ veil._literal(tojson(kinds)) }})) as kind
    from released
    {{- "\n    union all" if not loop.last }}
    {%- else %}
    select
        cast(null as varchar) as column_name,
        cast(null as varchar) as kind
    where false
    {%- endfor %}

),

validation_errors as (

    select
        found.column_name,
        found.kind,
        count(*) as row_count
    from found
    group by found.column_name, found.kind

)

select
    validation_errors.column_name,
    validation_errors.kind,
    validation_errors.row_count
from validation_errors
{%- endmacro %}

{#- The text columns of a relation that is built. -#}
{% macro _text_columns(relation) %}
    {%- set names = [] -%}
    {%- for column in adapter.get_columns_in_relation(relation) if column.is_string() or column.dtype | upper == 'VARCHAR' -%}
        {%- do names.append(column.name) -%}
    {%- endfor -%}
    {%- do return(names) -%}
{% endmacro %}

{% test no_pii(model, columns=none, column_name=none, kinds=none) %}
    {{- veil.no_pii(model, [column_name] if column_name is not none else columns, kinds) }}
{% endtest %}
