{#- The rows of a relation with the values of some columns exchanged within random pairs: each pair of rows that agree on
    `within` trades with probability `share`. No formal guarantee. -#}

{% macro swap(relation, columns, share, within=none) %}
    {%- set problems = [] -%}
    {%- set moved = veil._names(columns, 'columns', problems) -%}
    {%- set cell = veil._cell(within, moved, problems) -%}
    {%- set share = veil._number(share, 'share', problems, minimum=0, maximum=1) -%}
    {%- if problems -%}
        {%- do veil._fail('swap', problems) -%}
    {%- endif -%}
    {%- if not execute -%}
        {%- do return('select 1') -%}
    {%- endif -%}
    {%- do veil._require_udf('swap', 'veil_random_key') -%}
    {%- set all_columns = veil._columns_with('swap', relation, moved + cell) -%}
    {%- do return(adapter.dispatch('swap', 'veil')(relation, all_columns, moved, cell, share)) -%}
{% endmacro %}

{% macro default__swap(relation, all_columns, moved, cell, share) -%}
with source_rows as (

    select * from {{ relation }}

),

-- materialized: every row draws its lots once
drawn as materialized (

    select
        source_rows as source_row,
        veil_random_key(0) as place_lot,
        veil_random_key(1) as lot
    from source_rows

),

numbered as materialized (

    select
        drawn.source_row,
        drawn.lot,
        row_number() over ({{ veil._partition(cell, 'drawn.source_row') }} order by drawn.place_lot) as position
    from drawn

),

-- places 1 and 2 are a pair, 3 and 4, and so on; the lot of the first, one of 2^63, decides for both
paired as (

    select
        keeper.source_row as kept,
        case
            when case when keeper.position % 2 = 1 then keeper.lot else partner.lot end < {{ share }} * 9223372036854775808
                then partner.source_row
            else keeper.source_row
        end as given
    from numbered as keeper
    left join numbered as partner
        on partner.position = case when keeper.position % 2 = 1 then keeper.position + 1 else keeper.position - 1 end
        {%- for name in cell %}
        and keeper.source_row.{{ veil._quote(name) }} is not distinct from partner.source_row.{{ veil._quote(name) }}
        {%- endfor %}

),

final as (

    select
        {%- for name in all_columns if name | lower not in moved | map('lower') %}
        paired.kept.{{ veil._quote(name) }} as {{ veil._quote(name) }},
        {%- endfor %}
        {%- for name in all_columns if name | lower in moved | map('lower') %}
        coalesce(paired.given, paired.kept).{{ veil._quote(name) }} as {{ veil._quote(name) }}{{ "," if not loop.last }}
        {%- endfor %}
    from paired

)

select
    {%- for name in all_columns %}
    final.{{ veil._quote(name) }}{{ "," if not loop.last }}
    {%- endfor %}
from final
{%- endmacro %}
