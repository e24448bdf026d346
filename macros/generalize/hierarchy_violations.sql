{#- One row for each way in which a lookup relation is not a hierarchy, with how many values or labels it concerns. -#}

{% macro hierarchy_violations(relation, columns) %}
    {%- set problems = [] -%}
    {%- set columns = veil._names(columns, 'columns', problems) -%}
    {%- if not problems and columns | length < 2 -%}
        {%- do problems.append(veil._must_be('columns', "the column of the value and one column a level", columns)) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('hierarchy_violations', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('hierarchy_violations', 'veil')(relation, columns)) -%}
{% endmacro %}

{% macro default__hierarchy_violations(relation, columns) -%}
{%- set top = columns | length - 1 -%}
with level_rows as (

    select
        {%- for column in columns %}
        cast(source_rows.{{ veil._quote(column) }} as {{ dbt.type_string() }}) as level_{{ loop.index0 }},
        {%- endfor %}
        1 as one
    from {{ relation }} as source_rows

),

violations as (

    select 'it has no rows' as violation, 0 as level, 1 as found
    from (select count(*) as row_count from level_rows) as counted
    where counted.row_count = 0

    union all

    select 'values are listed twice', 0, count(*)
    from (select level_0 from level_rows where level_0 is not null group by level_0 having count(*) > 1) as repeated
    {%- for i in range(top + 1) %}

    union all

    select '{{ "labels" if i else "values" }} are missing', {{ i }}, count(*)
    from level_rows
    where level_{{ i }} is null
    {%- endfor %}
    {%- for i in range(1, top) %}

    union all

    select 'labels lie under several labels of the next level, so the levels do not nest', {{ i }}, count(*)
    from (select level_{{ i }} from level_rows group by level_{{ i }} having count(distinct level_{{ i + 1 }}) > 1) as split_labels

    union all

    select 'labels are called {{ veil._unmapped_label() }}, which is reserved', {{ i }}, count(*)
    from level_rows
    where level_{{ i }} = {{ veil._literal(veil._unmapped_label()) }}
    {%- endfor %}

    union all

    select 'the last column must hold one label, that of the top level, and holds more', {{ top }}, count(distinct level_{{ top }})
    from level_rows
    having count(distinct level_{{ top }}) > 1

    union all

    select 'rows hold the name of the column as their label: the file has no header, and its first value is lost. Put the header level_0, level_1, … on top', {{ top }}, count(*)
    from level_rows
    where level_{{ top }} = {{ veil._literal(columns[top]) }}

)

select violations.violation, violations.level, violations.found
from violations
where violations.found > 0
order by violations.level, violations.violation
{%- endmacro %}
