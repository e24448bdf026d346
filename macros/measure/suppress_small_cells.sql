{#- An aggregate table with its small cells left out, and as many more as it takes that none can be worked out. -#}

{% macro suppress_small_cells(relation, quasi_identifiers, count_column, min_cell, margins=[]) %}
    {%- set problems = [] -%}
    {%- set spec = veil._cells_spec(relation, quasi_identifiers, count_column, min_cell, margins, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('suppress_small_cells', problems) -%}
    {%- endif -%}
    {{- return(adapter.dispatch('suppress_small_cells', 'veil')(spec)) -}}
{% endmacro %}

{% macro default__suppress_small_cells(spec) %}
    {%- do veil._fail('suppress_small_cells', ["it needs the function veil_suppress_cells, which only DuckDB can load. "
        ~ "Suppress the cells before they are loaded into " ~ target.type]) -%}
{% endmacro %}

{% macro duckdb__suppress_small_cells(spec) -%}
{%- do veil._require_udf('suppress_small_cells', 'veil_suppress_cells') -%}
with
{{ veil._cells(spec) }},
decided as (
    select
        unnest(list(cells.cell order by cells.cell)) as cell,
        unnest(veil_suppress_cells(
            list(cells.people order by cells.cell),
            list(cells.lines order by cells.cell),
            {{ spec.min_cell }}
        )) as is_suppressed
    from cells
)
select
    {%- for name in spec.quasi_identifiers %}
    cells.q_{{ loop.index }} as {{ veil._quote(name) }},
    {%- endfor %}
    case when not decided.is_suppressed then cells.people end as {{ veil._quote(spec.count_column) }}
from cells
inner join decided
    on decided.cell = cells.cell
{%- endmacro %}

{% macro _cells_spec(relation, quasi_identifiers, count_column, min_cell, margins, problems) %}
    {%- do veil._text(count_column, 'count_column', problems) -%}
    {%- set spec = veil._spec(relation, quasi_identifiers, problems, more=[count_column]) -%}
    {%- do spec.update({
        'count_column': count_column,
        'min_cell': veil._integer(min_cell, 'min_cell', problems, minimum=2),
        'margins': veil._read_margins(margins, spec.quasi_identifiers, problems),
    }) -%}
    {%- set type = spec.types.get(count_column | lower, '') if count_column is string else '' -%}
    {%- if type and not veil._is_number_type(type) -%}
        {%- do problems.append("`count_column` must be a whole number, and `" ~ count_column ~ "` is " ~ type ~ ". Cast it in a step before") -%}
    {%- endif -%}
    {%- do return(spec) -%}
{% endmacro %}

{#- Each margin is the list of columns by which its totals are published; an empty one is the grand total. -#}
{% macro _read_margins(margins, quasi_identifiers, problems) %}
    {%- set known = quasi_identifiers | map('lower') | list -%}
    {%- set read = [] -%}
    {%- if margins is string or margins is mapping or margins is not sequence -%}
        {%- do problems.append(veil._must_be('margins', "a list of lists of columns, for example [[region], []]", margins)) -%}
        {%- do return([]) -%}
    {%- endif -%}
    {%- for margin in margins -%}
        {%- if margin is string or margin is mapping or margin is not sequence -%}
            {%- do problems.append(veil._must_be('margins', "a list of lists of columns, for example [[region], []]", margins)) -%}
        {%- else -%}
            {%- set positions = [] -%}
            {%- for name in margin -%}
                {%- if name | lower in known -%}
                    {%- do positions.append("q_" ~ (known.index(name | lower) + 1)) -%}
                {%- else -%}
                    {%- do problems.append("`margins` names `" ~ name ~ "`, which is not one of the quasi-identifiers"
                        ~ veil._nearest(name, quasi_identifiers)) -%}
                {%- endif -%}
            {%- endfor -%}
            {%- do read.append(positions) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(read) -%}
{% endmacro %}

{#- The cells with the lines they belong to. A NULL count is a cell that was left out. -#}
{% macro _cells(spec) -%}
cells as (
    select
        keyed.*,
        {{ veil._cell_lines(spec) }} as lines
    from (
        select
            {%- for name in spec.quasi_identifiers %}
            {{ veil._quote(name, 'source_rows') }} as q_{{ loop.index }},
            {%- endfor %}
            cast({{ veil._quote(spec.count_column, 'source_rows') }} as {{ dbt.type_bigint() }}) as people,
            1 as row_count,
            row_number() over (
                order by {% for name in spec.quasi_identifiers %}{{ veil._quote(name, 'source_rows') }}{{ ", " if not loop.last }}{% endfor %}
            ) as cell
        from {{ veil._from(spec.relation) }}
    ) as keyed
)
{%- endmacro %}

{% macro _cell_lines(spec) %}
    {%- set lines = [] -%}
    {%- for positions in spec.margins -%}
        {%- set key = veil._class_hash({'positions': positions}, 'keyed') if positions else "'all'" -%}
        {%- do lines.append("'" ~ loop.index ~ ":' || " ~ key) -%}
    {%- endfor -%}
    {%- do return("cast([" ~ lines | join(", ") ~ "] as varchar[])") -%}
{% endmacro %}
