{% test units_disjoint(model, unit, blocks, column_name=none) %}
    {%- set problems = [] -%}
    {%- do veil._text(unit, 'unit', problems) -%}
    {%- set names = veil._names(blocks, 'blocks', problems) -%}
    {%- if problems -%}
        {%- do veil._fail('units_disjoint', problems) -%}
    {%- endif -%}
with unit_blocks as (

    select distinct
        tested.{{ veil._quote(unit) }} as unit
        {%- for name in names %},
        tested.{{ veil._quote(name) }} as block_{{ loop.index }}
        {%- endfor %}
    from {{ model }} as tested
    where tested.{{ veil._quote(unit) }} is not null

),

units as (

    select
        unit_blocks.unit,
        count(*) as blocks
    from unit_blocks
    group by unit_blocks.unit
    having count(*) > 1

),

validation_errors as (

    select
        count(*) as units_in_several_blocks,
        max(units.blocks) as largest_number_of_blocks
    from units
    having count(*) > 0

)

select * from validation_errors
{% endtest %}
