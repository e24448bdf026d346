{#- One draw a row in a materialised step, then both halves of the point from it. `parameters` are numbers. -#}

{% macro _geo_noise(spec, law, parameters) %}
    {%- do veil._require_udf(spec.macro, 'veil_geo_' ~ law) -%}
    {%- do veil._geo_log(spec) -%}
    {%- do return(adapter.dispatch('_geo_noise', 'veil')(spec, law, parameters)) -%}
{% endmacro %}

{% macro default___geo_noise(spec, law, parameters) -%}
{%- set rows = "reports" if spec.reports and spec.unit is not none else "located" -%}
with {{ veil._geo_located(spec) }},
{%- if rows == 'reports' %}
{{ veil._geo_reports(spec) }}
{%- endif %}
region as materialized (
    {{ veil._geo_region(spec) }}
),
drawn as materialized (
    select
        {{ rows }}.*,
        veil_geo_{{ law }}{{ "_sticky" if spec.sticky }}(
            {%- if spec.query %}
            '{{ veil._release_id() }}',
            '{{ spec.query }}',
            {%- endif %}
            {{ rows }}.{{ spec.located }}.lon,
            {{ rows }}.{{ spec.located }}.lat,
            plane.name,
            {{ veil._literal(spec.crs) }},
            region.name,
            {%- if spec.sticky %}
            cast({{ veil._quote(spec.unit, rows) }} as varchar),
            cast({{ spec.place }} as double),
            {%- endif %}
            {%- for value in parameters %}
            cast({{ value }} as double){{ "," if not loop.last }}
            {%- endfor %}
        ) as {{ spec.point }}
    from {{ rows }}
    cross join plane
    cross join region
),
{{ veil._geo_final(spec, 'drawn', [spec.located, spec.point]) }}
{%- endmacro %}

{% macro _geo_region(spec) -%}
{%- if spec.within is none -%}
    select '' as name
{%- elif spec.within is string -%}
    select veil_geo_region([{{ veil._literal(spec.within) }}]) as name
{%- else -%}
    select veil_geo_region(list({{ veil._quote(spec.within_column, 'places') }})) as name
    from {{ spec.within }} as places
{%- endif -%}
{%- endmacro %}

{#- With a bound on reports, a random choice of that many points a person; the other rows keep no point. -#}
{% macro _geo_reports(spec) -%}
{%- set order = veil._helper_name('veil_order', spec.columns) -%}
shuffled as materialized (
    select
        located.*,
        random() as {{ order }}
    from located
),
reports as (
    select
        shuffled.* exclude ({{ order }}) replace (
            case
                when {{ veil._quote(spec.unit, 'shuffled') }} is not null
                    and row_number() over (
                        partition by {{ veil._quote(spec.unit, 'shuffled') }}, shuffled.{{ spec.located }}.lon is null
                        order by shuffled.{{ order }}
                    ) <= {{ spec.reports }}
                    then shuffled.{{ spec.located }}
            end as {{ spec.located }}
        )
    from shuffled
),
{%- endmacro %}
