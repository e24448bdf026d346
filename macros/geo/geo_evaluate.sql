{#- What a mask costs and what it leaves open, on one scale for all masks: a table of (measure, bin, value). -#}

{% macro geo_evaluate(truth, masked, key, x='lon', y='lat', probes=none, radius=750, mask=none) %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_pairs_spec('geo_evaluate', truth, masked, key, x, y, kwargs, problems) -%}
    {%- do spec.update({
        'probes': probes,
        'radius': veil._number(radius, 'radius', problems, minimum=0.001),
        'mask': veil._geo_mask_law(mask, problems),
    }) -%}
    {%- if problems -%}
        {%- do veil._fail('geo_evaluate', problems) -%}
    {%- endif -%}
    {%- do veil._require_udf('geo_evaluate', 'veil_geo_attack') -%}
    {%- do return(adapter.dispatch('geo_evaluate', 'veil')(spec)) -%}
{% endmacro %}

{% macro default__geo_evaluate(spec) -%}
with {{ veil._geo_pairs(spec) }},
{{ veil._geo_attacked(spec) }},
shifts as (
    select
        sqrt(pow(pairs.masked_x - pairs.x, 2) + pow(pairs.masked_y - pairs.y, 2)) / 1000 as km,
        -- clockwise from the plane's north; a point that stayed has none
        case
            when pairs.masked_x <> pairs.x or pairs.masked_y <> pairs.y
                then (degrees(atan2(pairs.masked_x - pairs.x, pairs.masked_y - pairs.y)) + 360) % 360
        end as bearing
    from pairs
),
sectors as (
    select unnest(range(0, 360, 30)) as sector
),
probe_points as (
    {{ veil._geo_probes(spec) }}
),
neighbours as (
    select
        probe_points.n,
        count(*) filter (where points.kind = 'true') as true_neighbours,
        count(*) filter (where points.kind = 'masked') as masked_neighbours
    from probe_points
    left join (
        select 'true' as kind, homes.x, homes.y from homes
        union all
        select 'masked' as kind, pairs.masked_x as x, pairs.masked_y as y from pairs
    ) as points
        on pow(points.x - probe_points.x, 2) + pow(points.y - probe_points.y, 2) <= pow({{ spec.radius }}, 2)
    group by probe_points.n
),
figures as (
    select 'points' as measure, null as bin, count(*) as value from pairs
    union all
    select 'points_without_place', null, (select count(*) from homes) - count(*) from pairs
    union all
    select 'linkage_rate', null, attacked.found.linked from attacked
    union all
    select 'median_shift_km', null, median(shifts.km) from shifts
    union all
    select 'mean_shift_km', null, avg(shifts.km) from shifts
    union all
    {%- for share in (0.05, 0.25, 0.5, 0.75, 0.95) %}
    select 'shift_km_at_quantile', {{ share }}, quantile_cont(shifts.km, {{ share }}) from shifts
    union all
    {%- endfor %}
    -- NULL where density is the same at every probe
    select
        'density_correlation',
        null,
        nullif(corr(neighbours.true_neighbours, neighbours.masked_neighbours), 'nan'::double)
    from neighbours
    union all
    select 'share_by_bearing', sectors.sector, count(shifts.bearing) / nullif((select count(s.bearing) from shifts as s), 0)
    from sectors
    left join shifts
        on floor(shifts.bearing / 30) * 30 = sectors.sector
    group by sectors.sector
    {%- if spec.mask %}
    union all
    select 'posterior_of_truth', null, attacked.found.truth from attacked
    union all
    select 'posterior_hits', null, attacked.found.top from attacked
    union all
    select 'posterior_candidates', null, attacked.found.candidates from attacked
    {%- endif %}
)
select
    figures.measure,
    cast(figures.bin as double) as bin,
    cast(figures.value as double) as value
from figures
{%- endmacro %}

{#- Probe points in metres: those of a relation, or a lattice of 20 by 20 over the true points. -#}
{% macro _geo_probes(spec) -%}
{%- if spec.probes is not none -%}
    select
        row_number() over () as n,
        located_probes.metres.x as x,
        located_probes.metres.y as y
    from (
        {{ veil._geo_other_points(spec, spec.probes) | indent(8) }}
    ) as located_probes
    where located_probes.metres.x is not null
{%- else -%}
    select
        columns.n * 20 + lines.n as n,
        bounds.x_min + (columns.n + 0.5) * (bounds.x_max - bounds.x_min) / 20 as x,
        bounds.y_min + (lines.n + 0.5) * (bounds.y_max - bounds.y_min) / 20 as y
    from (
        select min(homes.x) as x_min, max(homes.x) as x_max, min(homes.y) as y_min, max(homes.y) as y_max from homes
    ) as bounds
    cross join (select unnest(range(20)) as n) as columns
    cross join (select unnest(range(20)) as n) as lines
{%- endif -%}
{%- endmacro %}
