{#- One SELECT that maps each value of a column to itself or to `other`, with columns level_0, level_1 and level_2: a lookup
    hierarchy made from data. The values of the fewest people are merged until no value is left below the minimum and
    what they were merged into reaches it too: so a value that is not rare by itself may have to join. -#}

{% macro merge_rare(relation, column, minimum, unit=none, other='Other', too_few='fail') %}
    {%- set problems = [] -%}
    {%- set spec = {'column': column, 'minimum': minimum, 'unit': unit, 'other': other, 'too_few': too_few} -%}
    {%- set checked = veil._check_from_data(spec, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('merge_rare', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('merge_rare', 'veil')(relation, column, checked.minimum, unit, other, too_few) | trim) -%}
{% endmacro %}

{% macro default__merge_rare(relation, column, minimum, unit, other, too_few) -%}
{%- set text = dbt.type_string() -%}
{%- set all_too_few = "column `" ~ column ~ "` has fewer people than " ~ minimum ~ ", the `minimum`, in all" -%}
with value_rows as (

    select
        cast(source_rows.{{ veil._quote(column) }} as {{ text }}) as veil_value,
        {{ veil._quote(unit, 'source_rows') if unit is not none else '1' }} as veil_unit
    from {{ relation }} as source_rows
    where source_rows.{{ veil._quote(column) }} is not null

),

sizes as (

    select
        value_rows.veil_value,
        {{ 'count(distinct value_rows.veil_unit)' if unit is not none else 'count(*)' }} as people
    from value_rows
    group by value_rows.veil_value

),

ranked as (

    select
        sizes.veil_value,
        sizes.people,
        row_number() over (order by sizes.people, sizes.veil_value) as position
    from sizes

),

{% if unit is not none -%}
-- a person with several values is new only at the first of them
first_values as (

    select
        value_rows.veil_unit,
        min(ranked.position) as position
    from value_rows
    inner join ranked on value_rows.veil_value = ranked.veil_value
    where value_rows.veil_unit is not null
    group by value_rows.veil_unit

),

newcomers as (

    select
        ranked.position,
        count(first_values.veil_unit) as people
    from ranked
    left join first_values on ranked.position = first_values.position
    group by ranked.position

),
{%- else -%}
newcomers as (

    select
        ranked.position,
        ranked.people
    from ranked

),
{%- endif %}

merged as (

    select
        ranked.veil_value,
        ranked.people,
        ranked.position,
        sum(newcomers.people) over (order by ranked.position) as people_merged,
        sum(case when ranked.people < {{ minimum }} then 1 else 0 end) over () as rare
    from ranked
    inner join newcomers on ranked.position = newcomers.position

),

cut as (

    select min(case
        when merged.rare = 0 then 0
        when merged.position >= merged.rare and merged.people_merged >= {{ minimum }} then merged.position
    end) as position
    from merged

)

select
    merged.veil_value as level_0,
    case
        when cut.position is null then {{ veil._too_few('merge_rare', all_too_few, too_few, 'merged.veil_value') }}
        when merged.position <= cut.position then {{ veil._literal(other) }}
        else merged.veil_value
    end as level_1,
    '*' as level_2
from merged
cross join cut
{%- endmacro %}

{#- What both macros that pick from data are told, read and checked. -#}
{% macro _check_from_data(spec, problems) %}
    {%- do veil._text(spec.get('column'), 'column', problems) -%}
    {%- set minimum = veil._integer(spec.get('minimum'), 'minimum', problems, minimum=2) -%}
    {%- if spec.get('unit') is not none -%}
        {%- do veil._text(spec.unit, 'unit', problems) -%}
    {%- endif -%}
    {%- do veil._choice(spec.get('too_few', 'fail'), 'too_few', problems, ['fail', 'suppress']) -%}
    {%- set other = spec.get('other', 'Other') -%}
    {%- if veil._text(other, 'other', problems) is not none -%}
        {%- do veil._check_label(other, problems) -%}
    {%- endif -%}
    {%- do return({'minimum': minimum}) -%}
{% endmacro %}

{#- No grouping of these people reaches the minimum. -#}
{% macro _too_few(macro, problem, too_few, value) %}
    {%- if too_few == 'suppress' -%}
        {%- do return("'*'") -%}
    {%- endif -%}
    {%- do return(veil._raise(problem ~ ". Lower it, or set `too_few` to suppress", value, macro)) -%}
{% endmacro %}

{#- As hierarchies: the SELECT stands where a lookup has its relation. -#}
{% macro _check_merge_rare(spec, problems) %}
    {%- do return(veil._hierarchy_from_data(spec, problems, veil.merge_rare, ['unit', 'other', 'too_few'])) -%}
{% endmacro %}

{% macro _check_merge_extremes(spec, problems) %}
    {%- do return(veil._hierarchy_from_data(spec, problems, veil.merge_extremes, ['unit', 'ends', 'too_few'])) -%}
{% endmacro %}

{% macro _hierarchy_from_data(spec, problems, macro, options) %}
    {%- set found = problems | length -%}
    {%- set relation = veil._lookup_relation(spec.get('relation'), problems) -%}
    {%- do veil._check_from_data(spec, problems) -%}
    {%- if 'ends' in spec -%}
        {%- do veil._choice(spec.ends, 'ends', problems, ['both', 'bottom', 'top']) -%}
    {%- endif -%}
    {%- if problems | length > found -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set given = {} -%}
    {%- for option in options if option in spec -%}
        {%- do given.update({option: spec[option]}) -%}
    {%- endfor -%}
    {%- do return({
        'relation': "(\n" ~ macro(relation, spec.column, spec.minimum, **given) ~ "\n)",
        'columns': ['level_0', 'level_1', 'level_2'],
        'top_level': 2,
    }) -%}
{% endmacro %}
