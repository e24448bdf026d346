{#- The share of people whom a few of their own points, drawn at random, single out among all. -#}

{% macro unicity(relation, unit, point_columns, points=4, draws=1, seed=0) %}
    {%- set problems = [] -%}
    {%- set spec = veil._unicity_spec(relation, unit, point_columns, points, draws, seed, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('unicity', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('unicity', 'veil')(spec)) -%}
{% endmacro %}

{% macro default__unicity(spec) -%}
with {{ veil._unicity_steps(spec) }}
select *
from unicity_figures
{%- endmacro %}

{% macro _unicity_spec(relation, unit, point_columns, points, draws, seed, problems) %}
    {%- set spec = {
        'relation': relation,
        'unit': veil._text(unit, 'unit', problems),
        'columns': veil._names(point_columns, 'point_columns', problems),
        'points': veil._integer(points, 'points', problems, minimum=1, maximum=100),
        'draws': veil._integer(draws, 'draws', problems, minimum=1, maximum=1000),
        'seed': veil._integer(seed, 'seed', problems),
    } -%}
    {%- if not problems -%}
        {%- do veil._check_columns(relation, spec.columns + [unit], problems) -%}
    {%- endif -%}
    {%- do return(spec) -%}
{% endmacro %}

{% macro _unicity_steps(spec) -%}
{%- set parts = ["cast(draws.draw as " ~ dbt.type_string() ~ ")", "'|'", "cast(visited.unit_key as " ~ dbt.type_string() ~ ")"] -%}
{%- for _ in spec.columns -%}
    {%- do parts.extend(["'|'", "cast(visited.p_" ~ loop.index ~ " as " ~ dbt.type_string() ~ ")"]) -%}
{%- endfor -%}
visited as (
    select distinct
        {{ veil._quote(spec.unit, 'source_rows') }} as unit_key,
        {%- for name in spec.columns %}
        {{ veil._quote(name, 'source_rows') }} as p_{{ loop.index }}{{ "," if not loop.last }}
        {%- endfor %}
    from {{ veil._from(spec.relation) }}
    where {{ veil._quote(spec.unit, 'source_rows') }} is not null
    {%- for name in spec.columns %}
        and {{ veil._quote(name, 'source_rows') }} is not null
    {%- endfor %}
),
draws as (
    {%- for draw in range(spec.draws) %}
    select {{ spec.seed + draw }} as draw
    {{- "\n    union all" if not loop.last }}
    {%- endfor %}
),
-- an order that is as good as random, and the same in every run with one seed
shuffled as (
    select
        draws.draw,
        visited.*,
        row_number() over (
            partition by draws.draw, visited.unit_key
            order by {{ dbt.hash(dbt.concat(parts)) }}
        ) as place
    from visited
    cross join draws
),
known as (
    select shuffled.*
    from shuffled
    where shuffled.place <= {{ spec.points }}
),
-- who was at all of the known points: the person, and whoever cannot be told apart
matches as (
    select
        known.draw,
        known.unit_key,
        visited.unit_key as candidate
    from known
    inner join visited
        on {% for _ in spec.columns %}known.p_{{ loop.index }} = visited.p_{{ loop.index }}
        {{- "\n        and " if not loop.last }}{% endfor %}
    group by
        known.draw,
        known.unit_key,
        visited.unit_key
    having count(*) = {{ spec.points }}
),
crowds as (
    select
        matches.draw,
        matches.unit_key,
        count(*) as candidates
    from matches
    group by
        matches.draw,
        matches.unit_key
),
unicity_figures as (
    select
        {{ spec.points }} as points,
        (select count(distinct everybody.unit_key) from visited as everybody) as people,
        count(distinct crowds.unit_key) as people_measured,
        {{ veil._ratio("sum(case when crowds.candidates = 1 then 1 else 0 end)", "count(*)") }} as unicity
    from crowds
)
{%- endmacro %}
