{#- The rows of a relation with the values of some columns dealt out anew among them: every column keeps exactly the values
    it had, and what tied the columns to the rest is gone within each cell. No formal guarantee. -#}

{% macro shuffle(relation, columns, within=none) %}
    {%- set problems = [] -%}
    {%- set moved = veil._names(columns, 'columns', problems) -%}
    {%- set cell = veil._cell(within, moved, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('shuffle', problems) -%}
    {%- endif -%}
    {%- if not execute -%}
        {%- do return('select 1') -%}
    {%- endif -%}
    {%- do veil._require_udf('shuffle', 'veil_random_key') -%}
    {%- set all_columns = veil._columns_with('shuffle', relation, moved + cell) -%}
    {%- do return(adapter.dispatch('shuffle', 'veil')(relation, all_columns, moved, cell)) -%}
{% endmacro %}

{% macro default__shuffle(relation, all_columns, moved, cell) -%}
with source_rows as (

    select * from {{ relation }}

),

-- materialized: every row draws its lots once
drawn as materialized (

    select
        source_rows as source_row,
        veil_random_key(0) as place_lot,
        veil_random_key(1) as deal_lot
    from source_rows

),

numbered as materialized (

    select
        drawn.source_row,
        row_number() over ({{ veil._partition(cell, 'drawn.source_row') }} order by drawn.place_lot) as position,
        row_number() over ({{ veil._partition(cell, 'drawn.source_row') }} order by drawn.deal_lot) as dealt
    from drawn

),

final as (

    select
        {%- for name in all_columns %}
        {{ 'giver' if name | lower in moved | map('lower') else 'keeper' }}.source_row.{{ veil._quote(name) }} as {{ veil._quote(name) }}{{ "," if not loop.last }}
        {%- endfor %}
    from numbered as keeper
    inner join numbered as giver
        on keeper.position = giver.dealt
        {%- for name in cell %}
        and keeper.source_row.{{ veil._quote(name) }} is not distinct from giver.source_row.{{ veil._quote(name) }}
        {%- endfor %}

)

select
    {%- for name in all_columns %}
    final.{{ veil._quote(name) }}{{ "," if not loop.last }}
    {%- endfor %}
from final
{%- endmacro %}

{% macro _partition(names, qualifier) %}
    {%- set keys = [] -%}
    {%- for name in names -%}
        {%- do keys.append(veil._quote(name, qualifier)) -%}
    {%- endfor -%}
    {%- do return("partition by " ~ keys | join(", ") if keys else "") -%}
{% endmacro %}

{#- The columns of a relation in their order; stops when one that is asked for is not among them. -#}
{% macro _columns_with(macro, relation, asked) %}
    {%- if relation is string -%}
        {%- do veil._fail(macro, ["`relation` must be a relation such as ref('visits'), not a text"]) -%}
    {%- endif -%}
    {%- set names = adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
    {%- set problems = [] -%}
    {%- for name in asked if name | lower not in names | map('lower') -%}
        {%- do problems.append("there is no column `" ~ name ~ "`" ~ veil._nearest(name, names)) -%}
    {%- endfor -%}
    {%- if not names -%}
        {%- do problems.append("the relation has no columns: it is not built, or ephemeral") -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail(macro, problems, relation | string) -%}
    {%- endif -%}
    {%- do return(names) -%}
{% endmacro %}
