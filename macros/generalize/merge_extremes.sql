{#- Top and bottom coding with cuts picked from data: the least that a minimum of people have or exceed, and the most that
    a minimum of people have or fall below. One SELECT with columns level_0, level_1 and level_2: a lookup hierarchy. -#}

{% macro merge_extremes(relation, column, minimum, unit=none, ends='both', too_few='fail') %}
    {%- set problems = [] -%}
    {%- set spec = {'column': column, 'minimum': minimum, 'unit': unit, 'too_few': too_few} -%}
    {%- set checked = veil._check_from_data(spec, problems) -%}
    {%- do veil._choice(ends, 'ends', problems, ['both', 'bottom', 'top']) -%}
    {%- if problems -%}
        {%- do veil._fail('merge_extremes', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('merge_extremes', 'veil')(relation, column, checked.minimum, unit, ends, too_few) | trim) -%}
{% endmacro %}

{% macro default__merge_extremes(relation, column, minimum, unit, ends, too_few) -%}
{%- set value = 'source_rows.' ~ veil._quote(column) -%}
{%- set text = dbt.type_string() -%}
{%- set ends_too_few = "column `" ~ column ~ "` has no " ~ ("end" if ends != 'both' else "two ends apart") ~ " of " ~ minimum
    ~ " people, the `minimum`" -%}
with value_rows as (

    select
        {{ value }} as veil_value,
        {{ veil._quote(unit, 'source_rows') if unit is not none else 'row_number() over (order by ' ~ value ~ ')' }} as veil_unit
    from {{ relation }} as source_rows
    where {{ value }} > -{{ veil._infinity() }} and {{ value }} < {{ veil._infinity() }}

),

people as (

    select
        value_rows.veil_unit,
        min(value_rows.veil_value) as lowest,
        max(value_rows.veil_value) as highest
    from value_rows
    where value_rows.veil_unit is not null
    group by value_rows.veil_unit

),

ranked as (

    select
        people.lowest,
        people.highest,
        row_number() over (order by people.lowest) as from_below,
        row_number() over (order by people.highest desc) as from_above
    from people

),

cuts as (

    select
        max(case when ranked.from_below = {{ minimum }} then ranked.lowest end) as bottom,
        max(case when ranked.from_above = {{ minimum }} then ranked.highest end) as top
    from ranked

),

distinct_values as (

    select distinct value_rows.veil_value
    from value_rows

)

select
    cast(distinct_values.veil_value as {{ text }}) as level_0,
    case
        when cuts.bottom is null or cuts.top is null{{ " or cuts.bottom >= cuts.top" if ends == 'both' }} then {{
            veil._too_few('merge_extremes', ends_too_few, too_few, 'distinct_values.veil_value') }}
        {%- if ends != 'top' %}
        when distinct_values.veil_value <= cuts.bottom then '<=' || cast(cuts.bottom as {{ text }})
        {%- endif %}
        {%- if ends != 'bottom' %}
        when distinct_values.veil_value >= cuts.top then '>=' || cast(cuts.top as {{ text }})
        {%- endif %}
        else cast(distinct_values.veil_value as {{ text }})
    end as level_1,
    '*' as level_2
from distinct_values
cross join cuts
{%- endmacro %}
