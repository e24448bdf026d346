{#- Move each point to the centre of the smallest quadrant that holds at least k people, and give its bounds. -#}

{% macro geo_cloak(relation, k, max_depth=12, extent=none, x='lon', y='lat', adaptive=false) %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_spec('geo_cloak', relation, x, y, kwargs, problems) -%}
    {%- do spec.update({
        'k': veil._integer(k, 'k', problems, minimum=2),
        'depth': veil._integer(max_depth, 'max_depth', problems, minimum=0, maximum=20),
        'extent': veil._geo_box(extent, 'extent', problems),
        'adaptive': veil._boolean(adaptive, 'adaptive', problems),
    }) -%}
    {%- do veil._geo_new_columns(['cell_x_min', 'cell_y_min', 'cell_x_max', 'cell_y_max'], spec, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('geo_cloak', problems) -%}
    {%- endif -%}
    {%- do veil._require_udf('geo_cloak', 'veil_geo_project') -%}
    {%- do veil._geo_log(spec) -%}
    {%- do return(adapter.dispatch('geo_cloak', 'veil')(spec)) -%}
{% endmacro %}

{% macro default__geo_cloak(spec) -%}
{%- set quad = veil._helper_name('veil_quad', spec.columns) -%}
{%- set corner = {} -%}
{%- for name in ('x', 'y', 'side', 'depth', 'low', 'high') -%}
    {%- do corner.update({name: veil._helper_name('veil_' ~ name, spec.columns)}) -%}
{%- endfor -%}
with {{ veil._geo_located(spec) }},
{{ veil._geo_metres(spec) }},
{{ veil._geo_square(spec) }},
finest as materialized (
    select
        metres.*,
        {{ veil._geo_finest(spec) }} as {{ quad }}
    from metres
    cross join square
),
occupied as materialized (
    select
        finest.{{ quad }}.x as qx,
        finest.{{ quad }}.y as qy,
        {%- if spec.unit is not none %}
        {{ veil._quote(spec.unit, 'finest') }} as unit_key,
        {%- endif %}
        count(*) as row_count
    from finest
    where finest.{{ quad }} is not null
    group by all
),
{{ veil._geo_levels(spec) }}
-- true, or the query stops
inside as materialized (
    select
        case
            when {{ "true" if spec.invalid == 'suppress' else "count(*) = 0" }} then true
            else error(
                'veil.geo_cloak(): ' || count(*) || ' points lie outside the root. Declare a larger `extent`, '
                || 'or release them as NULL, NULL with `invalid=''suppress''`.'
            )
        end as holds
    from finest
    where finest.{{ spec.metres }}.x is not null
        and finest.{{ quad }} is null
),
deepest as (
    select
        finest.*,
        case
            {%- for depth in range(spec.depth, -1, -1) %}
            when level_{{ depth }}.qx is not null then {{ depth }}
            {%- endfor %}
        end as {{ corner.depth }}
    from finest
    inner join inside
        on inside.holds
    {%- for depth in range(spec.depth + 1) %}
    left join level_{{ depth }}
        on level_{{ depth }}.qx = finest.{{ quad }}.x >> {{ spec.depth - depth }}
        and level_{{ depth }}.qy = finest.{{ quad }}.y >> {{ spec.depth - depth }}
    {%- endfor %}
),
cloaked as (
    select
        deepest.*,
        {%- for half, origin in {'x': 'west', 'y': 'south'}.items() %}
        (
            square.{{ origin }}
            + (deepest.{{ quad }}.{{ half }} >> ({{ spec.depth }} - deepest.{{ corner.depth }}))
            * (square.side / (1 << deepest.{{ corner.depth }}))
        ) / 1000000.0 as {{ corner[half] }},
        {%- endfor %}
        square.side / (1 << deepest.{{ corner.depth }}) / 1000000.0 as {{ corner.side }}
    from deepest
    cross join square
),
centred as (
    select
        cloaked.*,
        {%- for name, share in {spec.point: 0.5, corner.low: 0, corner.high: 1}.items() %}
        veil_geo_unproject(
            cloaked.{{ corner.x }} + {{ share }} * cloaked.{{ corner.side }},
            cloaked.{{ corner.y }} + {{ share }} * cloaked.{{ corner.side }},
            plane.name,
            {{ veil._literal(spec.crs) }}
        ) as {{ name }},
        {%- endfor %}
    from cloaked
    cross join plane
),
{{ veil._geo_final(spec, 'centred', [spec.located, spec.metres, spec.point, quad] + corner.values() | list, [
    "centred." ~ corner.low ~ ".x as cell_x_min",
    "centred." ~ corner.low ~ ".y as cell_y_min",
    "centred." ~ corner.high ~ ".x as cell_x_max",
    "centred." ~ corner.high ~ ".y as cell_y_max",
]) }}
{%- endmacro %}

{#- The root, in micrometres: the declared extent, or a square around the points whose corners are whole powers of two. -#}
{% macro _geo_square(spec) -%}
{%- if spec.extent is none -%}
square as (
    select
        cast(floor(min(metres.{{ spec.metres }}.x) / (sides.side / 2)) * (sides.side / 2) * 1000000 as bigint) as west,
        cast(floor(min(metres.{{ spec.metres }}.y) / (sides.side / 2)) * (sides.side / 2) * 1000000 as bigint) as south,
        cast(sides.side * 1000000 as bigint) as side
    from metres
    cross join (
        select
            2 * pow(2, ceil(log2(greatest(
                1,
                max(spans.{{ spec.metres }}.x) - min(spans.{{ spec.metres }}.x),
                max(spans.{{ spec.metres }}.y) - min(spans.{{ spec.metres }}.y)
            )))) as side
        from metres as spans
    ) as sides
    group by sides.side
)
{%- else -%}
{%- set west, south, east, north = spec.extent -%}
{%- set margin = 0 if spec.crs.startswith('plane:') else 0.02 -%}
-- the declared extent in metres; on the Earth its outline is bent, so it is taken with a margin
corners as (
    select veil_geo_project(outline.place.lon, outline.place.lat, plane.name) as metres
    from (
        select veil_geo_locate(points.x, points.y, {{ spec.settings_anywhere }}) as place
        from (
            values
            {%- for y in (south, (south + north) / 2, north) %}
                {%- set outer = loop %}
                {%- for x in (west, (west + east) / 2, east) %}
                (cast({{ x }} as double), cast({{ y }} as double)){{ "," if not (loop.last and outer.last) }}
                {%- endfor %}
            {%- endfor %}
        ) as points (x, y)
    ) as outline
    cross join plane
),
square as (
    select
        cast((min(corners.metres.x) - {{ margin }} * max(spans.side)) * 1000000 as bigint) as west,
        cast((min(corners.metres.y) - {{ margin }} * max(spans.side)) * 1000000 as bigint) as south,
        cast({{ 1 + 2 * margin }} * max(spans.side) * 1000000 as bigint) as side
    from corners
    cross join (
        select greatest(max(c.metres.x) - min(c.metres.x), max(c.metres.y) - min(c.metres.y)) as side
        from corners as c
    ) as spans
)
{%- endif -%}
{%- endmacro %}

{#- The quadrant of the greatest depth, by whole numbers: half-open, and NULL outside the root. -#}
{% macro _geo_finest(spec) -%}
{%- set offset = {} -%}
{%- for half, origin in {'x': 'west', 'y': 'south'}.items() -%}
    {%- do offset.update({half: "(" ~ veil._geo_micrometres("metres." ~ spec.metres ~ "." ~ half) ~ " - square." ~ origin ~ ")"}) -%}
{%- endfor -%}
case
            when least({{ offset.x }}, {{ offset.y }}) >= 0 and greatest({{ offset.x }}, {{ offset.y }}) < square.side
                then {
                    'x': cast(cast({{ offset.x }} as hugeint) * {{ 2 ** spec.depth }} // square.side as bigint),
                    'y': cast(cast({{ offset.y }} as hugeint) * {{ 2 ** spec.depth }} // square.side as bigint)
                }
        end
{%- endmacro %}

{#- The quadrants that people may be released in, depth by depth and only within those of the depth above: with k people,
    or in the adaptive variant those whose parent leaves no child with fewer. -#}
{% macro _geo_levels(spec) -%}
{%- set people = "count(distinct occupied.unit_key)" if spec.unit is not none else "sum(occupied.row_count)" -%}
level_0 as materialized (
    select
        0 as qx,
        0 as qy,
        {{ people }} as people
    from occupied
    having {{ people }} >= {{ spec.k }}
),
{%- for depth in range(1, spec.depth + 1) %}
{%- set shift = spec.depth - depth %}
level_{{ depth }} as materialized (
    select counted.*
    from (
        select
            occupied.qx >> {{ shift }} as qx,
            occupied.qy >> {{ shift }} as qy,
            {{ people }} as people
        from occupied
        inner join level_{{ depth - 1 }} as parents
            on parents.qx = occupied.qx >> {{ shift + 1 }}
            and parents.qy = occupied.qy >> {{ shift + 1 }}
        group by all
    ) as counted
    {%- if spec.adaptive %}
    qualify min(counted.people) over (partition by counted.qx >> 1, counted.qy >> 1) >= {{ spec.k }}
    {%- else %}
    where counted.people >= {{ spec.k }}
    {%- endif %}
),
{%- endfor %}
{%- endmacro %}
