{#- What the attack tests read of a released relation. -#}

{#- The columns to look at, or none for those the relation has; text, as `where` makes of it, has none to ask. -#}
{% macro _given_columns(columns, relation, problems) %}
    {%- if columns is not none -%}
        {%- do return(veil._names(columns, 'columns', problems)) -%}
    {%- elif relation is string -%}
        {%- do problems.append("with `where`, give `columns`: the relation is not known by name then") -%}
    {%- endif -%}
    {%- do return(none) -%}
{% endmacro %}

{% macro _released_values(relation, column) -%}
with released_rows as (

    select * from {{ relation }}

),

released as (

    select distinct cast(released_rows.{{ veil._quote(column) }} as varchar) as released_value
    from released_rows
    where released_rows.{{ veil._quote(column) }} is not null

),
{%- endmacro %}
