{% test small_cells(
    model, count_column, min_cell, quasi_identifiers=none, column_name=none, margins=[], require_rows=false, show_values=false
) %}
    {%- set problems = [] -%}
    {%- set spec = veil._cells_spec(
        model, veil._with_column(quasi_identifiers, column_name), count_column, min_cell, margins, problems
    ) -%}
    {%- do veil._read_common(spec, require_rows, show_values, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('small_cells', problems) -%}
    {%- endif -%}
    {{- adapter.dispatch('test_small_cells', 'veil')(spec) -}}
{% endtest %}

{% macro default__test_small_cells(spec) %}
    {%- do veil._fail('small_cells', ["it needs the function veil_recoverable_cells, which only DuckDB can load"]) -%}
{% endmacro %}

{% macro duckdb__test_small_cells(spec) -%}
with
{{ veil._cells(spec) }},
totals as (
    select
        coalesce(sum(cells.people), 0) as people,
        count(*) as row_count
    from cells
),
left_out as (
    select cells.*
    from cells
    where cells.people is null
),
recovered as (
    select
        unnest(list(left_out.cell order by left_out.cell)) as cell,
        unnest(veil_recoverable_cells(list(left_out.lines order by left_out.cell))) as is_recoverable
    from left_out
),
recoverable as (
    select left_out.*
    from left_out
    inner join recovered
        on recovered.cell = left_out.cell
    where recovered.is_recoverable
),
validation_errors as (
    {{ veil._error_row(spec, 'cells', "'published cell below min_cell'", 'cells.people', spec.min_cell) }}
    where cells.people > 0 and cells.people < {{ spec.min_cell }}
    union all
    {{ veil._error_row(spec, 'recoverable', "'suppressed cell that the margins give away'", 'null', spec.min_cell) }}
    {{- veil._common_errors(spec) }}
)
select *
from validation_errors
{%- endmacro %}
