{#- The rows of a relation with numeric columns replaced by the mean or median of groups of k or more rows that are near
    each other. Rows with a NULL in one of them keep none. No formal guarantee. -#}

{% macro microaggregate(relation, columns, k, statistic='mean', within=none) %}
    {%- set problems = [] -%}
    {%- set averaged = veil._names(columns, 'columns', problems) -%}
    {%- set cell = veil._cell(within, averaged, problems) -%}
    {%- set k = veil._integer(k, 'k', problems, minimum=2) -%}
    {%- do veil._choice(statistic, 'statistic', problems, ['mean', 'median']) -%}
    {%- if problems -%}
        {%- do veil._fail('microaggregate', problems) -%}
    {%- endif -%}
    {%- if not execute -%}
        {%- do return('select 1') -%}
    {%- endif -%}
    {%- set all_columns = veil._columns_with('microaggregate', relation, averaged + cell) -%}
    {%- for column in adapter.get_columns_in_relation(relation)
        if column.name | lower in averaged | map('lower') | list and not veil._is_number_type(column.dtype | lower) -%}
        {%- do problems.append("`" ~ column.name ~ "` must be a number, and is " ~ column.dtype ~ ". Cast it in a step before") -%}
    {%- endfor -%}
    {%- if problems -%}
        {%- do veil._fail('microaggregate', problems, relation | string) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('microaggregate', 'veil')(relation, all_columns, averaged, k, statistic, cell)) -%}
{% endmacro %}

{% macro default__microaggregate(relation, all_columns, averaged, k, statistic, cell) %}
    {%- do veil._fail('microaggregate', ["carries whole rows as values, which DuckDB alone can so far. Got the adapter: " ~ target.type]) -%}
{% endmacro %}

{% macro duckdb__microaggregate(relation, all_columns, averaged, k, statistic, cell) -%}
{%- set function = 'avg' if statistic == 'mean' else 'median' -%}
{%- set complete = [] -%}
{%- for name in averaged -%}
    {%- do complete.append("scaled.source_row." ~ veil._quote(name) ~ " is not null") -%}
{%- endfor -%}
with source_rows as (

    select * from {{ relation }}

),

-- one number a row: the sum of its standardised columns, by which neighbours are found
scaled as (

    select
        source_rows as source_row,
        {% for name in averaged -%}
        {% set column = "cast(" ~ veil._quote(name, 'source_rows') ~ " as double)" -%}
        coalesce(({{ column }} - avg({{ column }}) over ()) / nullif(stddev_pop({{ column }}) over (), 0), 0)
        {{- " + " if not loop.last }}
        {%- endfor %} as score
    from source_rows

),

ranked as (

    select
        scaled.source_row,
        row_number() over ({{ veil._partition(cell, 'scaled.source_row') }} order by scaled.score) as place,
        count(*) over ({{ veil._partition(cell, 'scaled.source_row') }}) as row_count
    from scaled
    where {{ complete | join(" and ") }}

),

-- groups of k; the rows that are left over join the last one
grouped as (

    select
        ranked.source_row,
        ranked.row_count,
        least((ranked.place - 1) // {{ k }}, ranked.row_count // {{ k }} - 1) as bucket
    from ranked

),

final as (

    select
        {%- for name in all_columns %}
        {%- if name | lower in averaged | map('lower') %}
        case
            when grouped.row_count >= {{ k }}
                then {{ function }}(cast(grouped.source_row.{{ veil._quote(name) }} as double)) over ({{ veil._group_key(cell) }})
        end as {{ veil._quote(name) }}{{ "," if not loop.last }}
        {%- else %}
        grouped.source_row.{{ veil._quote(name) }} as {{ veil._quote(name) }}{{ "," if not loop.last }}
        {%- endif %}
        {%- endfor %}
    from grouped
    union all
    select
        {%- for name in all_columns %}
        {{ 'null' if name | lower in averaged | map('lower') else 'scaled.source_row.' ~ veil._quote(name) }} as {{ veil._quote(name) }}{{ "," if not loop.last }}
        {%- endfor %}
    from scaled
    where not ({{ complete | join(" and ") }})

)

select
    {%- for name in all_columns %}
    final.{{ veil._quote(name) }}{{ "," if not loop.last }}
    {%- endfor %}
from final
{%- endmacro %}

{% macro _group_key(cell) %}
    {%- set keys = ["grouped.bucket"] -%}
    {%- for name in cell -%}
        {%- do keys.append("grouped.source_row." ~ veil._quote(name)) -%}
    {%- endfor -%}
    {%- do return("partition by " ~ keys | join(", ")) -%}
{% endmacro %}
