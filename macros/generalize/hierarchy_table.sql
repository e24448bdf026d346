{#- A hierarchy as rows: value, level, label, from level 0 to the top. A tree, a lookup and what is made from data list
    their own values; the other kinds have no list, and label the distinct values of a column or the values given. -#}

{% macro hierarchy_table(hierarchy, relation=none, column=none, values=none, on_unmapped='fail') %}
    {%- if not execute -%}
        {%- do veil._depend_on_lookup(hierarchy) -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- set checked = veil._hierarchy(hierarchy, problems) -%}
    {%- if (relation is none) != (column is none) or (relation is not none and values is not none) -%}
        {%- do problems.append("give `relation` and `column`, or `values`, or for a tree, a lookup or a hierarchy made from data neither") -%}
    {%- elif relation is none and values is none and checked.columns is not defined and checked.groups is not defined -%}
        {%- do problems.append("a hierarchy of kind `" ~ checked.kind ~ "` has no list of values: give `relation` and `column`, or `values`") -%}
    {%- elif values is not none and not veil._list(values) -%}
        {%- do problems.append(veil._must_be('values', "a list with at least one value", values)) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('hierarchy_table', problems, checked.subject) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('hierarchy_table', 'veil')(checked, relation, column, values, on_unmapped)) -%}
{% endmacro %}

{% macro default__hierarchy_table(checked, relation, column, values, on_unmapped) -%}
with hierarchy_values as (

    {% if relation is not none -%}
    select distinct source_rows.{{ veil._quote(column) }} as hierarchy_value
    from {{ relation }} as source_rows
    where source_rows.{{ veil._quote(column) }} is not null
    {%- elif values is none and checked.columns is defined -%}
    select level_rows.{{ veil._quote(checked.columns[0]) }} as hierarchy_value
    from {{ checked.relation }} as level_rows
    {%- else -%}
    {{ veil._value_rows(veil._list(values) or veil._tree_values(checked.groups)) | indent(4) }}
    {%- endif %}

),

final as (
    {% for level in range((checked.top_level or 0) + 1) %}
    select
        cast(hierarchy_values.hierarchy_value as {{ dbt.type_string() }}) as value,
        {{ level }} as level,
        cast({{ veil.generalize('hierarchy_value', checked, level, on_unmapped, 'hierarchy_values') | indent(8) }} as {{ dbt.type_string() }}) as label
    from hierarchy_values
    {{ "union all" if not loop.last }}
    {%- endfor %}

)

select final.value, final.level, final.label
from final
{%- endmacro %}

{% macro _value_rows(values) %}
    {%- do return(adapter.dispatch('_value_rows', 'veil')(values)) -%}
{% endmacro %}

{% macro default___value_rows(values) -%}
    {%- for value in values -%}
    select {{ veil._literal(value) }} as hierarchy_value{{ "\nunion all\n" if not loop.last }}
    {%- endfor -%}
{%- endmacro %}

{% macro duckdb___value_rows(values) -%}
select listed.hierarchy_value
from (values {% for value in values %}({{ veil._literal(value) }}){{ ", " if not loop.last }}{% endfor %}) as listed (hierarchy_value)
{%- endmacro %}
