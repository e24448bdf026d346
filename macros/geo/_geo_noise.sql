{#- One draw a row in a materialised step, then both halves of the point from it. `parameters` are numbers. -#}

{% macro _geo_noise(spec, law, parameters) %}
    {%- do veil._require_udf(spec.macro, 'veil_geo_' ~ law) -%}
    {%- do veil._geo_log(spec) -%}
    {%- do return(adapter.dispatch('_geo_noise', 'veil')(spec, law, parameters)) -%}
{% endmacro %}

{% macro default___geo_noise(spec, law, parameters) -%}
with {{ veil._geo_located(spec) }},
region as materialized (
    {{ veil._geo_region(spec) }}
),
drawn as materialized (
    select
        located.*,
        veil_geo_{{ law }}{{ "_sticky" if spec.sticky }}(
            located.{{ spec.located }}.lon,
            located.{{ spec.located }}.lat,
            plane.name,
            {{ veil._literal(spec.crs) }},
            region.name,
            {%- if spec.sticky %}
            cast({{ veil._quote(spec.unit, 'located') }} as varchar),
            cast({{ spec.place }} as double),
            {%- endif %}
            {%- for value in parameters %}
            cast({{ value }} as double){{ "," if not loop.last }}
            {%- endfor %}
        ) as {{ spec.point }}
    from {{ veil._geo_reports(spec) }}
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

{#- The rows that are masked. With a bound on reports, a random choice of that many rows a person: the others keep no point. -#}
{% macro _geo_reports(spec) -%}
{%- if not spec.reports or spec.unit is none -%}
located
{%- else -%}
(
        select
            located.* replace (
                case
                    when {{ veil._quote(spec.unit, 'located') }} is not null
                        and row_number() over (
                            partition by {{ veil._quote(spec.unit, 'located') }}, located.{{ spec.located }}.lon is null
                            order by random()
                        ) <= {{ spec.reports }}
                        then located.{{ spec.located }}
                end as {{ spec.located }}
            )
        from located
    ) as located
{%- endif -%}
{%- endmacro %}
