{#- What a location macro is told, checked once: a mapping that every builder of SQL here reads. -#}

{% macro _geo_options() %}
    {%- do return({
        'crs': {'default': 'EPSG:4326'},
        'projection': {'default': 'auto'},
        'unit': {'default': none},
        'invalid': {'default': 'fail', 'choices': ['fail', 'suppress']},
        'longitudes': {'default': 'strict', 'choices': ['strict', 'wrap']},
        'null_island': {'default': 'keep', 'choices': ['keep', 'reject']},
        'area': {'default': none},
        'within': {'default': none, 'noise': true},
        'within_column': {'default': 'wkt', 'noise': true},
        'sticky': {'default': false, 'noise': true},
        'place': {'default': 100, 'noise': true},
        'independent_because': {'default': none, 'noise': true},
    }) -%}
{% endmacro %}

{% macro _geo_spec(macro, relation, x, y, given, problems, noise=false) %}
    {%- set known = veil._geo_options() -%}
    {%- set names = [] -%}
    {%- for name, rule in known.items() if noise or not rule.noise -%}
        {%- do names.append(name) -%}
    {%- endfor -%}
    {%- for name in given if name not in names -%}
        {%- do problems.append("there is no option `" ~ name ~ "`" ~ veil._nearest(name, names)) -%}
    {%- endfor -%}
    {%- set spec = {'macro': macro, 'relation': relation, 'noise': noise} -%}
    {%- for name, rule in known.items() -%}
        {%- do spec.update({name: given.get(name, rule.default)}) -%}
        {%- if rule.choices is defined -%}
            {%- do veil._choice(spec[name], name, problems, rule.choices) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do spec.update({
        'x': veil._text(x, 'x', problems),
        'y': veil._text(y, 'y', problems),
        'crs': veil._text(spec.crs, 'crs', problems),
        'projection': veil._text(spec.projection, 'projection', problems),
        'area': veil._geo_box(spec.area, 'area', problems),
        'sticky': veil._boolean(spec.sticky, 'sticky', problems),
        'place': veil._number(spec.place, 'place', problems, minimum=0.001),
    }) -%}
    {%- for name in ('unit', 'independent_because') if spec[name] is not none -%}
        {%- do veil._text(spec[name], name, problems) -%}
    {%- endfor -%}
    {%- if x is string and y is string and x | lower == y | lower -%}
        {%- do problems.append("`x` and `y` must be two columns. Got: '" ~ x ~ "' twice") -%}
    {%- endif -%}
    {%- if spec.within is not none and spec.within is not string and not veil._is_relation(spec.within) -%}
        {%- do problems.append(veil._must_be('within', "polygons as well-known text, or a relation that holds them", spec.within)) -%}
    {%- endif -%}
    {%- if spec.sticky and spec.unit is none -%}
        {%- do problems.append("`sticky` draws once for each person and place: name the column of the person in `unit`") -%}
    {%- endif -%}
    {%- if not problems -%}
        {%- set columns = [x, y] + ([spec.unit] if spec.unit is not none else []) -%}
        {%- do veil._check_columns(relation, columns, problems) -%}
    {%- endif -%}
    {%- if execute and not problems -%}
        {%- set columns = veil._columns(relation) | map(attribute='name') | list -%}
        {%- do spec.update({
            'columns': columns,
            'located': veil._helper_name('veil_located', columns),
            'metres': veil._helper_name('veil_metres', columns),
            'point': veil._helper_name('veil_point', columns),
        }) -%}
    {%- else -%}
        {%- do spec.update({'columns': [], 'located': 'veil_located', 'metres': 'veil_metres', 'point': 'veil_point'}) -%}
    {%- endif -%}
    {#- Only what differs from the default is written out: the text is in every call of the compiled SQL. -#}
    {%- set settings = {'macro': macro, 'crs': spec.crs} -%}
    {%- for name in ('projection', 'invalid', 'longitudes', 'null_island', 'area') if spec[name] != known[name].default -%}
        {%- do settings.update({name: spec[name]}) -%}
    {%- endfor -%}
    {%- do spec.update({
        'settings': veil._literal(tojson(dict(settings, noise=true) if noise else settings)),
        'settings_anywhere': veil._literal(tojson({'crs': spec.crs, 'longitudes': spec.longitudes})),
    }) -%}
    {%- do return(spec) -%}
{% endmacro %}

{#- [west, south, east, north], or [low, high] for both axes. -#}
{% macro _geo_box(value, name, problems) %}
    {%- if value is none -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set expected = "a list of four numbers (west, south, east, north)" -%}
    {%- if value is string or value is mapping or value is not sequence or value | length not in (2, 4) -%}
        {%- do problems.append(veil._must_be(name, expected, value)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set numbers = [] -%}
    {%- for one in (value if value | length == 4 else [value[0], value[0], value[1], value[1]]) -%}
        {%- do numbers.append(veil._number(one, name, problems)) -%}
    {%- endfor -%}
    {%- if none not in numbers and numbers[1] >= numbers[3] -%}
        {%- do problems.append("`" ~ name ~ "` must have its south below its north. Got: " ~ value) -%}
    {%- endif -%}
    {%- do return(numbers) -%}
{% endmacro %}

{#- A name of a point's half as a number; text that is no number is NaN, and so counted and never cast aloud. -#}
{% macro _geo_coordinate(name, alias='source_rows') %}
    {%- set column = veil._quote(name, alias) -%}
    {%- do return("coalesce(try_cast(" ~ column ~ " as double), case when " ~ column ~ " is not null then 'nan'::double end)") -%}
{% endmacro %}

{#- The steps every location macro starts with.

    located   the rows of the relation, each with its longitude, latitude and the reason why it has none
    plane     one row: the plane of the data set, or the query stops here, before anything is written -#}
{% macro _geo_located(spec) -%}
located as (
    select
        source_rows.*,
        veil_geo_locate(
            {{ veil._geo_coordinate(spec.x) }},
            {{ veil._geo_coordinate(spec.y) }},
            {{ spec.settings }}
        ) as {{ spec.located }}
    from {{ veil._from(spec.relation) }}
),
{{ veil._geo_plane(spec) }}
{%- endmacro %}

{% macro _geo_plane(spec) -%}
{%- set place = "located." ~ spec.located -%}
plane as materialized (
    select
        veil_geo_plane(
            {{ spec.settings }},
            histogram({{ place }}.reason),
            [
                min({{ place }}.lon), max({{ place }}.lon),
                min({{ place }}.lat), max({{ place }}.lat),
                min(({{ place }}.lon % 360 + 360) % 360), max(({{ place }}.lon % 360 + 360) % 360),
                min({{ place }}.x), max({{ place }}.x),
                min({{ place }}.y), max({{ place }}.y)
            ],
            {{ veil._geo_moving(spec) }}
        ) as name
    from located
)
{%- endmacro %}

{#- People whose points would get independent noise: a subquery, or 0 where that cannot be or is argued for. -#}
{% macro _geo_moving(spec) -%}
{%- if not spec.noise or spec.unit is none or spec.sticky or spec.independent_because or spec.reports -%}
0
{%- else -%}
(
                select count(*)
                from (
                    select located.{{ veil._quote(spec.unit) }}
                    from located
                    where located.{{ spec.located }}.lon is not null
                    group by located.{{ veil._quote(spec.unit) }}
                    having count(*) > 1
                ) as moving
            )
{%- endif -%}
{%- endmacro %}

{#- The columns of the result: as they came, with the point in place of the two coordinates. -#}
{% macro _geo_final(spec, source, helpers, more=[]) -%}
final as (
    select
        {%- if spec.columns %}
        {%- for name in spec.columns %}
        {%- if name | lower == spec.x | lower %}
        {{ source }}.{{ spec.point }}.x as {{ veil._quote(name) }},
        {%- elif name | lower == spec.y | lower %}
        {{ source }}.{{ spec.point }}.y as {{ veil._quote(name) }},
        {%- else %}
        {{ veil._quote(name, source) }},
        {%- endif %}
        {%- endfor %}
        {%- else %}
        {{ source }}.* exclude ({{ helpers | join(", ") }}) replace (
            {{ source }}.{{ spec.point }}.x as {{ veil._quote(spec.x) }},
            {{ source }}.{{ spec.point }}.y as {{ veil._quote(spec.y) }}
        ),
        {%- endif %}
        {%- for expression in more %}
        {{ expression }},
        {%- endfor %}
    from {{ source }}
)
select *
from final
{%- endmacro %}

{#- Say in the log which plane the run uses. Only when something is built: compiling and showing query nothing here. -#}
{% macro _geo_log(spec) %}
    {%- set building = execute and flags.WHICH in ('run', 'build') and not flags.EMPTY -%}
    {%- if building and not (spec.relation is string and '__dbt__cte__' in spec.relation) and not spec.relation.is_cte -%}
        {%- set query %}with {{ veil._geo_located(spec) }} select plane.name from plane{% endset -%}
        {%- set plane = run_query(query).columns[0].values()[0] -%}
        {%- set kinds = {
            'flat': "the plane of the data",
            'geodesic': "the azimuthal equidistant plane around each point: no UTM zone is true to scale over this extent",
            'laea': "Lambert's azimuthal equal-area plane " ~ plane ~ ": no UTM zone is true to scale over this extent",
        } -%}
        {%- set said = kinds.get(plane.split(':')[0], plane ~ ", one plane for all rows") -%}
        {%- set where = " of model " ~ model.name if model is defined and model.resource_type == 'model' else "" -%}
        {%- do log("veil." ~ spec.macro ~ "()" ~ where ~ " measures metres in " ~ said, info=true) -%}
    {%- endif -%}
{% endmacro %}

{#- Points of another relation, in the plane that was chosen for the first. -#}
{% macro _geo_other_points(spec, relation) -%}
select veil_geo_project(found.place.lon, found.place.lat, plane.name) as metres
from (
    select veil_geo_locate(
        {{ veil._geo_coordinate(spec.x) }},
        {{ veil._geo_coordinate(spec.y) }},
        {{ spec.settings_anywhere }}
    ) as place
    from {{ veil._from(relation) }}
) as found
cross join plane
{%- endmacro %}
