{% test geo_linkage(model, truth, key, max_linkage, x='lon', y='lat', crs='EPSG:4326', require_rows=false) %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_pairs_spec('geo_linkage', truth, model, key, x, y, {'crs': crs}, problems) -%}
    {%- do spec.update({
        'max_linkage': veil._number(max_linkage, 'max_linkage', problems, minimum=0, maximum=1),
        'require_rows': veil._boolean(require_rows, 'require_rows', problems),
    }) -%}
    {%- if problems -%}
        {%- do veil._fail('geo_linkage', problems) -%}
    {%- endif -%}
    {%- do veil._require_udf('geo_linkage', 'veil_geo_attack') -%}
    {{- adapter.dispatch('test_geo_linkage', 'veil')(spec) -}}
{% endtest %}

{% macro default__test_geo_linkage(spec) -%}
with {{ veil._geo_pairs(spec) }},
{{ veil._geo_attacked(spec) }},
validation_errors as (
    select
        'larger share of points linked to their own address than max_linkage' as problem,
        attacked.found.linked as measured,
        {{ spec.max_linkage }} as threshold
    from attacked
    where attacked.found.linked > {{ spec.max_linkage }} + 1e-9
    {%- if spec.require_rows %}
    union all
    select
        'no points' as problem,
        0 as measured,
        1 as threshold
    from attacked
    where attacked.found.linked is null
    {%- endif %}
)
select *
from validation_errors
{%- endmacro %}
