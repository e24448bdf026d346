{#- The pipeline from points to a map that can be released: bin, treat the attributes within each cell, keep the classes
    with k people, keep those with l values. Cells come out as centres and as whole numbers, for every measure. -#}

{% macro geo_cells(relation, size, k, x='lon', y='lat', attributes=none, sensitive_column=none, l=none) %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_spec('geo_cells', relation, x, y, kwargs, problems) -%}
    {%- set size = veil._number(size, 'size', problems, minimum=0.001) -%}
    {%- do spec.update({
        'size_um': veil._geo_size_um(size) if size is not none else none,
        'k': veil._integer(k, 'k', problems, minimum=2),
        'l': none if l is none else veil._number(l, 'l', problems, minimum=1),
        'sensitive': sensitive_column,
        'attributes': veil._geo_attributes(attributes, problems),
    }) -%}
    {%- if (l is none) != (sensitive_column is none) -%}
        {%- do problems.append("`l` and `sensitive_column` go together: give both, or neither") -%}
    {%- endif -%}
    {%- if not problems -%}
        {%- set named = spec.attributes.keys() | list + ([sensitive_column] if sensitive_column is not none else []) -%}
        {%- do veil._check_columns(relation, named, problems) -%}
        {%- do veil._geo_new_columns(['cell_x', 'cell_y'], spec, problems) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('geo_cells', problems) -%}
    {%- endif -%}
    {%- do veil._require_udf('geo_cells', 'veil_geo_project') -%}
    {%- do veil._geo_log(spec) -%}
    {%- do return(adapter.dispatch('geo_cells', 'veil')(spec)) -%}
{% endmacro %}

{% macro default__geo_cells(spec) -%}
{%- set swapped = [] -%}
{%- set kept = [] -%}
{%- for name, treatment in spec.attributes.items() -%}
    {%- do (swapped if treatment == 'swap' else kept).append(name) -%}
{%- endfor -%}
{%- set keys = ['cell_x', 'cell_y'] + kept -%}
with {{ veil._geo_located(spec) }},
{{ veil._geo_metres(spec) }},
binned as materialized (
    select
        metres.*,
        {%- for half in ('x', 'y') %}
        {{ veil._geo_index("metres." ~ spec.metres ~ "." ~ half, spec.size_um) }} as cell_{{ half }},
        {%- endfor %}
        {%- for name in swapped %}
        random() as {{ veil._helper_name('veil_donor_' ~ loop.index, spec.columns) }},
        {%- endfor %}
        random() as {{ veil._helper_name('veil_order', spec.columns) }}
    from metres
    where metres.{{ spec.metres }}.x is not null
),
{{ veil._geo_treated(spec, swapped) }},
class_sizes as (
    {{ veil.classes('treated', keys, unit=spec.unit) | indent(4) }}
),
{%- if spec.l is not none %}
class_diversity as (
    {{ veil.l_diversity('treated', keys, spec.sensitive, kind='distinct', unit=spec.unit) | indent(4) }}
),
{%- endif %}
released as (
    select
        treated.*,
        veil_geo_unproject(
            {{ veil._geo_centre('treated.cell_x', spec.size_um) }},
            {{ veil._geo_centre('treated.cell_y', spec.size_um) }},
            plane.name,
            {{ veil._literal(spec.crs) }}
        ) as {{ spec.point }}
    from treated
    cross join plane
    inner join class_sizes
        on {{ veil._geo_same(keys, 'treated', 'class_sizes') }}
        and class_sizes.{{ veil._helper_name('people', keys) }} >= {{ spec.k }}
    {%- if spec.l is not none %}
    inner join class_diversity
        on {{ veil._geo_same(keys, 'treated', 'class_diversity') }}
        and class_diversity.{{ veil._helper_name('l', keys) }} + 1e-9 >= {{ spec.l }}
    {%- endif %}
),
{{ veil._geo_final(
    spec, 'released', [spec.located, spec.metres, spec.point, 'cell_x', 'cell_y'],
    ["released.cell_x", "released.cell_y"]
) }}
{%- endmacro %}

{#- Attributes generalised in place, and those that are swapped dealt out anew among the rows of their cell. -#}
{% macro _geo_treated(spec, swapped) -%}
{%- set order = veil._helper_name('veil_order', spec.columns) -%}
{%- set donors = [] -%}
{%- for name in swapped -%}
    {%- do donors.append(veil._helper_name('veil_donor_' ~ loop.index, spec.columns)) -%}
{%- endfor -%}
{%- if swapped -%}
dealt as (
    select
        binned.*,
        row_number() over (partition by binned.cell_x, binned.cell_y order by binned.{{ order }}) as {{ order }}_rank
        {%- for donor in donors %},
        row_number() over (partition by binned.cell_x, binned.cell_y order by binned.{{ donor }}) as {{ donor }}_rank
        {%- endfor %}
    from binned
),
{% endif -%}
treated as materialized (
    select
        rows_kept.* exclude (
            {{ ([order, order ~ "_rank"] if swapped else [order]) | join(", ") }}
            {%- for donor in donors %}, {{ donor }}, {{ donor }}_rank{% endfor %}
        )
        {%- if spec.attributes.values() | reject('equalto', 'keep') | list %} replace (
            {%- for name, treatment in spec.attributes.items() if treatment != 'keep' %}
            {%- if treatment == 'swap' %}
            {{ veil._quote(name, "given_" ~ (swapped.index(name) + 1)) }} as {{ veil._quote(name) }}
            {%- else %}
            {{ veil.generalize(name, treatment.hierarchy, treatment.level, relation_alias='rows_kept') }} as {{ veil._quote(name) }}
            {%- endif %}
            {{- "," if not loop.last }}
            {%- endfor %}
        )
        {%- endif %}
    from {{ "dealt" if swapped else "binned" }} as rows_kept
    {%- for donor in donors %}
    inner join dealt as given_{{ loop.index }}
        on rows_kept.cell_x = given_{{ loop.index }}.cell_x
        and rows_kept.cell_y = given_{{ loop.index }}.cell_y
        and rows_kept.{{ order }}_rank = given_{{ loop.index }}.{{ donor }}_rank
    {%- endfor %}
)
{%- endmacro %}

{% macro _geo_same(keys, left, right) %}
    {%- set tests = [] -%}
    {%- for name in keys -%}
        {%- do tests.append(veil._same(veil._quote(name, left), veil._quote(name, right))) -%}
    {%- endfor -%}
    {%- do return(tests | join("\n        and ")) -%}
{% endmacro %}

{#- What becomes of each attribute: `keep`, `swap`, or {hierarchy: …, level: …}. -#}
{% macro _geo_attributes(attributes, problems) %}
    {%- if attributes is none -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set read = {} -%}
    {%- for name, treatment in veil._mapping(attributes, 'attributes', problems).items() -%}
        {%- set where = "attributes." ~ name -%}
        {%- if treatment is mapping -%}
            {%- do veil._mapping(treatment, where, problems, ['hierarchy', 'level']) -%}
            {%- for key in ('hierarchy', 'level') if treatment.get(key) is none -%}
                {%- do problems.append("`" ~ where ~ "." ~ key ~ "` is missing: a binned attribute names its hierarchy and its level") -%}
            {%- endfor -%}
        {%- else -%}
            {%- do veil._choice(treatment, where, problems, ['keep', 'swap']) -%}
        {%- endif -%}
        {%- do read.update({name: treatment}) -%}
    {%- endfor -%}
    {%- do return(read) -%}
{% endmacro %}
