{#- The true and the masked points of one data set, joined by key, in metres of one plane. -#}

{% macro _geo_pairs_spec(macro, truth, masked, key, x, y, given, problems) %}
    {%- set spec = veil._geo_spec(macro, truth, x, y, given, problems) -%}
    {%- do spec.update({'masked': masked, 'key': veil._names(key, 'key', problems), 'mask': none}) -%}
    {%- if not problems -%}
        {%- do veil._check_columns(truth, spec.key, problems) -%}
        {%- do veil._check_columns(masked, spec.key + [x, y], problems) -%}
    {%- endif -%}
    {%- do return(spec) -%}
{% endmacro %}

{#- homes   every true point that has a place, numbered from 1
    pairs   each masked point with its own true one -#}
{% macro _geo_pairs(spec) -%}
{{ veil._geo_located(spec) }},
{{ veil._geo_metres(spec) }},
true_rows as (
    select
        metres.*,
        row_number() over () as {{ spec.point }}
    from metres
    where metres.{{ spec.metres }}.x is not null
),
homes as materialized (
    select
        true_rows.{{ spec.point }} as n,
        {%- for name in spec.key %}
        {{ veil._quote(name, 'true_rows') }} as key_{{ loop.index }},
        {%- endfor %}
        true_rows.{{ spec.metres }}.x as x,
        true_rows.{{ spec.metres }}.y as y
    from true_rows
),
masked_points as (
    select
        found.* exclude (place),
        veil_geo_project(found.place.lon, found.place.lat, plane.name) as metres
    from (
        select
            {%- for name in spec.key %}
            {{ veil._quote(name, 'source_rows') }} as key_{{ loop.index }},
            {%- endfor %}
            veil_geo_locate(
                {{ veil._geo_coordinate(spec.x) }},
                {{ veil._geo_coordinate(spec.y) }},
                {{ spec.settings_anywhere }}
            ) as place
        from {{ veil._from(spec.masked) }}
    ) as found
    cross join plane
),
-- true, or the query stops
one_to_one as materialized (
    select
        case
            when count(*) = count(distinct ({{ veil._geo_keys(spec) }})) then true
            else error({{ veil._literal("veil." ~ spec.macro ~ "(): `key` does not name each true point once: ") }}
                || count(*) - count(distinct ({{ veil._geo_keys(spec) }})) || ' rows share theirs.')
        end as holds
    from homes
),
pairs as materialized (
    select
        homes.n,
        homes.x,
        homes.y,
        masked_points.metres.x as masked_x,
        masked_points.metres.y as masked_y
    from masked_points
    inner join homes
        on {% for name in spec.key %}masked_points.key_{{ loop.index }} = homes.key_{{ loop.index }}
        {{- "\n        and " if not loop.last }}{% endfor %}
    inner join one_to_one
        on one_to_one.holds
    where masked_points.metres.x is not null
)
{%- endmacro %}

{% macro _geo_keys(spec) %}
    {%- set keys = [] -%}
    {%- for _ in spec.key -%}
        {%- do keys.append("homes.key_" ~ loop.index) -%}
    {%- endfor -%}
    {%- do return(keys | join(", ")) -%}
{% endmacro %}

{% macro _geo_attacked(spec) -%}
attacked as materialized (
    select
        veil_geo_attack(
            (select list(homes.x order by homes.n) from homes),
            (select list(homes.y order by homes.n) from homes),
            list(pairs.n),
            list(pairs.masked_x),
            list(pairs.masked_y),
            {{ veil._literal(tojson(spec.mask) if spec.mask else "") }}
        ) as found
    from pairs
)
{%- endmacro %}

{#- A mask as `{kind: donut, minimum: 100, maximum: 1000}`; masks without chance need no parameters. -#}
{% macro _geo_mask_law(mask, problems) %}
    {%- if mask is none -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set laws = {
        'jitter': ['radius'], 'gaussian': ['sigma'], 'donut': ['minimum', 'maximum'], 'planar_laplace': ['epsilon'],
        'grid': [], 'round': [], 'hex': [], 'cloak': [],
    } -%}
    {%- set given = {'kind': mask} if mask is string else veil._mapping(mask, 'mask', problems) -%}
    {%- set kind = veil._choice(given.get('kind'), 'mask', problems, laws.keys() | list) -%}
    {%- if kind is none -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do veil._mapping(given, 'mask', problems, ['kind'] + laws[kind]) -%}
    {%- set law = {'kind': kind} -%}
    {%- for name in laws[kind] -%}
        {%- do law.update({name: veil._number(given.get(name), "mask." ~ name, problems, minimum=0)}) -%}
    {%- endfor -%}
    {%- do return(law) -%}
{% endmacro %}
