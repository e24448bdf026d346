{#- Points near a sensitive place are moved to the centre of a larger cell, or lose their place, or are dropped. -#}

{% macro geo_sensitive_places(relation, places, radius, x='lon', y='lat', action='generalize', size=none) %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_spec('geo_sensitive_places', relation, x, y, kwargs, problems) -%}
    {%- set radius = veil._number(radius, 'radius', problems, minimum=0.001) -%}
    {%- do veil._choice(action, 'action', problems, ['generalize', 'suppress', 'drop']) -%}
    {%- if action == 'generalize' and size is none -%}
        {%- do problems.append("`size` is missing: the side in metres of the cell that points near a place are moved to") -%}
    {%- elif action != 'generalize' and size is not none -%}
        {%- do problems.append("`size` goes with `action='generalize'` only") -%}
    {%- elif size is not none -%}
        {%- set size = veil._number(size, 'size', problems, minimum=0.001) -%}
        {%- if size is not none and radius is not none and size < 2 * radius -%}
            {%- do problems.append("`size` must be at least twice the radius, or the cell tells the place. Got: " ~ size) -%}
        {%- endif -%}
    {%- endif -%}
    {%- if not problems -%}
        {%- do veil._check_columns(places, [x, y], problems) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('geo_sensitive_places', problems) -%}
    {%- endif -%}
    {%- do veil._require_udf('geo_sensitive_places', 'veil_geo_project') -%}
    {%- do veil._geo_log(spec) -%}
    {%- do spec.update({'places': places, 'radius': radius, 'action': action}) -%}
    {%- do return(adapter.dispatch('geo_sensitive_places', 'veil')(spec, veil._geo_size_um(size) if size is not none else none)) -%}
{% endmacro %}

{% macro default__geo_sensitive_places(spec, size_um) -%}
{%- set near = veil._helper_name('veil_near', spec.columns) -%}
{%- set metres = "metres." ~ spec.metres -%}
with {{ veil._geo_located(spec) }},
{{ veil._geo_metres(spec) }},
place_points as (
    {{ veil._geo_other_points(spec, spec.places) | indent(4) }}
),
offsets as (
    select unnest([-1, 0, 1]) as n
),
-- each place in its own square of one radius and in the eight around it, so that near points share a square with it
squares as (
    select
        floor(place_points.metres.x / {{ spec.radius }}) + across.n as qx,
        floor(place_points.metres.y / {{ spec.radius }}) + along.n as qy,
        place_points.metres as place
    from place_points
    cross join offsets as across
    cross join offsets as along
    where place_points.metres.x is not null
),
flagged as (
    select
        metres.*,
        exists (
            select 1
            from squares
            where squares.qx = floor({{ metres }}.x / {{ spec.radius }})
                and squares.qy = floor({{ metres }}.y / {{ spec.radius }})
                and pow(squares.place.x - {{ metres }}.x, 2) + pow(squares.place.y - {{ metres }}.y, 2)
                    <= pow({{ spec.radius }}, 2)
        ) as {{ near }}
    from metres
),
protected as (
    select
        flagged.*,
        case
            when not flagged.{{ near }}
                then {'x': flagged.{{ spec.located }}.x, 'y': flagged.{{ spec.located }}.y}
            {%- if spec.action == 'generalize' %}
            else veil_geo_unproject(
                {%- for half in ('x', 'y') %}
                {{ veil._geo_centre(veil._geo_index("flagged." ~ spec.metres ~ "." ~ half, size_um), size_um) }},
                {%- endfor %}
                plane.name,
                {{ veil._literal(spec.crs) }}
            )
            {%- endif %}
        end as {{ spec.point }}
    from flagged
    cross join plane
    {%- if spec.action == 'drop' %}
    where not flagged.{{ near }}
    {%- endif %}
),
{{ veil._geo_final(spec, 'protected', [spec.located, spec.metres, near, spec.point]) }}
{%- endmacro %}
