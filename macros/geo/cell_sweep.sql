{#- k and diversity against cell size: one row a size. -#}

{% macro cell_sweep(relation, sizes, x='lon', y='lat', sensitive_column=none) %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_spec('cell_sweep', relation, x, y, kwargs, problems) -%}
    {%- set read = [] -%}
    {%- if sizes is string or sizes is mapping or sizes is not sequence or not sizes -%}
        {%- do problems.append(veil._must_be('sizes', "a list of metres, with at least one", sizes)) -%}
    {%- else -%}
        {%- for size in sizes -%}
            {%- do read.append(veil._number(size, 'sizes', problems, minimum=0.001)) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if sensitive_column is not none and not problems -%}
        {%- do veil._check_columns(relation, [veil._text(sensitive_column, 'sensitive_column', problems)], problems) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('cell_sweep', problems) -%}
    {%- endif -%}
    {%- do veil._require_udf('cell_sweep', 'veil_geo_project') -%}
    {%- do return(adapter.dispatch('cell_sweep', 'veil')(spec, read, sensitive_column)) -%}
{% endmacro %}

{% macro default__cell_sweep(spec, sizes, sensitive_column) -%}
{%- set unit = 'veil_unit' if spec.unit is not none else none -%}
{%- set keys = ['size_m', 'cell_x', 'cell_y'] -%}
with {{ veil._geo_located(spec) }},
{{ veil._geo_metres(spec) }},
sizes as (
    {%- for size in sizes %}
    select cast({{ size }} as double) as size_m, {{ veil._geo_size_um(size) }} as size_um
    {{- "\n    union all" if not loop.last }}
    {%- endfor %}
),
binned as (
    select
        sizes.size_m,
        {%- for half in ('x', 'y') %}
        {{ veil._geo_index("metres." ~ spec.metres ~ "." ~ half, "sizes.size_um") }} as cell_{{ half }},
        {%- endfor %}
        {{ veil._quote(spec.unit, 'metres') if spec.unit is not none else "null" }} as veil_unit,
        {{ veil._quote(sensitive_column, 'metres') if sensitive_column is not none else "null" }} as veil_value
    from metres
    cross join sizes
    where metres.{{ spec.metres }}.x is not null
),
class_sizes as (
    {{ veil.classes('binned', keys, unit=unit) | indent(4) }}
),
{%- for kind in ('distinct', 'entropy') if sensitive_column is not none %}
class_{{ kind }} as (
    {{ veil.l_diversity('binned', keys, 'veil_value', kind=kind, unit=unit) | indent(4) }}
),
diversity_{{ kind }} as (
    select
        class_{{ kind }}.size_m,
        min(class_{{ kind }}.l) as least
    from class_{{ kind }}
    group by class_{{ kind }}.size_m
),
{%- endfor %}
sized as (
    select
        class_sizes.size_m,
        count(*) as cells,
        sum(class_sizes.row_count) as row_count,
        min(class_sizes.people) as k,
        median(class_sizes.people) as median_people,
        {%- for floor in veil._setting('audiences').values() | unique | sort %}
        count(*) filter (where class_sizes.people >= {{ floor }}) / count(*) as share_of_cells_with_{{ floor }},
        {%- endfor %}
    from class_sizes
    group by class_sizes.size_m
)
select
    sized.*
    {%- if sensitive_column is not none %},
    diversity_distinct.least as l_distinct,
    diversity_entropy.least as l_entropy
    {%- endif %}
from sized
{%- if sensitive_column is not none %}
left join diversity_distinct
    on sized.size_m = diversity_distinct.size_m
left join diversity_entropy
    on sized.size_m = diversity_entropy.size_m
{%- endif %}
{%- endmacro %}
