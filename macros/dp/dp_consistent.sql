{#- A SELECT that adds figures whose children sum to their parents to a relation of noisy figures at several levels. All
    of it is post-processing: it reads what is released, and costs nothing.

    Weighted least squares on a tree by two passes (Hay, Rastogi, Miklau, Suciu 2010, section 4, with a variance for each
    node): from the leaves up, a node takes the average of its own figure and its children's sum, each weighted by its
    inverse variance; from the root down, what a parent and its children differ by is divided over them by their variances. -#}

{% macro dp_consistent(relation, hierarchy, measure, non_negative=false) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- set levels = veil._names(hierarchy, 'hierarchy', problems) -%}
    {%- set measure = veil._text(measure, 'measure', problems) -%}
    {%- set non_negative = veil._boolean(non_negative, 'non_negative', problems) -%}
    {%- if problems -%}
        {%- do veil._fail('dp_consistent', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('dp_consistent', 'veil')(relation, levels, measure, non_negative)) -%}
{% endmacro %}

{% macro default__dp_consistent(relation, levels, measure, non_negative) -%}
{%- set depth = levels | length -%}
with figures as (

    select
        {%- for name in levels %}
        source_rows.{{ veil._quote(name) }} as level_{{ loop.index }},
        {%- endfor %}
        cast(source_rows.{{ veil._quote(measure) }} as {{ dbt.type_float() }}) as figure,
        cast(source_rows.{{ veil._quote(measure ~ '_scale') }} as {{ dbt.type_float() }})
            * cast(source_rows.{{ veil._quote(measure ~ '_scale') }} as {{ dbt.type_float() }}) as variance
    from {{ relation }} as source_rows

),

-- From the leaves up. A row whose finer levels are NULL is a total; a total that is not there is what its parts sum to.
up_{{ depth }} as (

    select
        {%- for level in range(1, depth + 1) %}
        figures.level_{{ level }},
        {%- endfor %}
        figures.figure as estimate,
        figures.variance
    from figures
    where {% for level in range(1, depth + 1) %}figures.level_{{ level }} is not null{{ " and " if not loop.last }}{% endfor %}

),
{% for level in range(depth - 1, -1, -1) %}
parts_{{ level }} as (

    select
        {%- for own in range(1, level + 1) %}
        up_{{ level + 1 }}.level_{{ own }},
        {%- endfor %}
        sum(up_{{ level + 1 }}.estimate) as estimate,
        sum(up_{{ level + 1 }}.variance) as variance
    from up_{{ level + 1 }}
    {%- if level %}
    group by {% for own in range(1, level + 1) %}up_{{ level + 1 }}.level_{{ own }}{{ ", " if not loop.last }}{% endfor %}
    {%- endif %}

),

up_{{ level }} as (

    select
        {%- for own in range(1, level + 1) %}
        parts_{{ level }}.level_{{ own }},
        {%- endfor %}
        case
            when figures.figure is null then parts_{{ level }}.estimate
            else (figures.figure / figures.variance + parts_{{ level }}.estimate / parts_{{ level }}.variance)
                / (1 / figures.variance + 1 / parts_{{ level }}.variance)
        end as estimate,
        case
            when figures.figure is null then parts_{{ level }}.variance
            else 1 / (1 / figures.variance + 1 / parts_{{ level }}.variance)
        end as variance
    from parts_{{ level }}
    left join figures
        on {% for own in range(1, level + 1) %}figures.level_{{ own }} = parts_{{ level }}.level_{{ own }} and {% endfor %}
        {%- for finer in range(level + 1, depth + 1) %}figures.level_{{ finer }} is null{{ " and " if not loop.last }}{% endfor %}

),
{% endfor %}
-- From the root down.
down_0 as (

    select
        up_0.estimate as consistent
        {%- if non_negative %},
        case when up_0.estimate < 0 then 0 else up_0.estimate end as positive
        {%- endif %}
    from up_0

),
{% for level in range(1, depth + 1) %}
{{ veil._dp_downwards(level, non_negative) | trim }},
{% endfor %}
consistent_figures as (
    {%- for level in range(depth + 1) %}

    select
        {%- for own in range(1, depth + 1) %}
        {{ "down_" ~ level ~ ".level_" ~ own if own <= level else "null" }} as level_{{ own }},
        {%- endfor %}
        down_{{ level }}.consistent{{ "," if non_negative }}
        {%- if non_negative %}
        down_{{ level }}.positive
        {%- endif %}
    from down_{{ level }}
    {%- if not loop.last %}

    union all
    {%- endif %}
    {%- endfor %}

)

select
    source_rows.*,
    consistent_figures.consistent as {{ veil._quote(measure ~ '_consistent') }}{{ "," if non_negative }}
    {%- if non_negative %}
    consistent_figures.positive as {{ veil._quote(measure ~ '_non_negative') }}
    {%- endif %}
from {{ relation }} as source_rows
left join consistent_figures
    on {% for name in levels -%}
    {{ "" if loop.first else "\n    and " -}}
    (source_rows.{{ veil._quote(name) }} = consistent_figures.level_{{ loop.index }} or (source_rows.{{ veil._quote(name) }} is null and consistent_figures.level_{{ loop.index }} is null))
    {%- endfor %}
{%- endmacro %}

{#- One level down. Without negatives the children are the nearest that are 0 or more and sum to their parent: each gives
    way in proportion to its variance, down to 0; the shift is the largest that any leading run of children asks for
    (Wang, Carreira-Perpinan 2013, algorithm 1, with weights). -#}
{% macro _dp_downwards(level, non_negative) -%}
{%- set above = level - 1 -%}
shares_{{ level }} as (

    select
        {%- for own in range(1, level + 1) %}
        up_{{ level }}.level_{{ own }},
        {%- endfor %}
        up_{{ level }}.estimate,
        up_{{ level }}.variance,
        up_{{ level }}.estimate + (down_{{ above }}.consistent - parts_{{ above }}.estimate) * up_{{ level }}.variance / parts_{{ above }}.variance as consistent
        {%- if non_negative %},
        down_{{ above }}.positive as parent,
        (
            sum(up_{{ level }}.estimate) over (
                {{ "partition by " if above }}{% for own in range(1, above + 1) %}up_{{ level }}.level_{{ own }}{{ ", " if not loop.last }}{% endfor %}
                order by up_{{ level }}.estimate / up_{{ level }}.variance desc
                rows between unbounded preceding and current row
            ) - down_{{ above }}.positive
        ) / sum(up_{{ level }}.variance) over (
            {{ "partition by " if above }}{% for own in range(1, above + 1) %}up_{{ level }}.level_{{ own }}{{ ", " if not loop.last }}{% endfor %}
            order by up_{{ level }}.estimate / up_{{ level }}.variance desc
            rows between unbounded preceding and current row
        ) as shift
        {%- endif %}
    from up_{{ level }}
    inner join parts_{{ above }}
        on {% for own in range(1, above + 1) %}parts_{{ above }}.level_{{ own }} = up_{{ level }}.level_{{ own }}{{ " and " if not loop.last }}{% endfor %}{{ "1 = 1" if not above }}
    inner join down_{{ above }}
        on {% for own in range(1, above + 1) %}down_{{ above }}.level_{{ own }} = up_{{ level }}.level_{{ own }}{{ " and " if not loop.last }}{% endfor %}{{ "1 = 1" if not above }}

),
{% if non_negative %}
shifted_{{ level }} as (

    select
        shares_{{ level }}.*,
        max(shares_{{ level }}.shift) over ({{ "partition by " if above }}{% for own in range(1, above + 1) %}shares_{{ level }}.level_{{ own }}{{ ", " if not loop.last }}{% endfor %}) as largest_shift
    from shares_{{ level }}

),
{% endif %}
{%- set source = ("shifted_" if non_negative else "shares_") ~ level %}
down_{{ level }} as (

    select
        {%- for own in range(1, level + 1) %}
        {{ source }}.level_{{ own }},
        {%- endfor %}
        {{ source }}.consistent{{ "," if non_negative }}
        {%- if non_negative %}
        case
            when {{ source }}.estimate - {{ source }}.largest_shift * {{ source }}.variance < 0 then 0
            else {{ source }}.estimate - {{ source }}.largest_shift * {{ source }}.variance
        end as positive
        {%- endif %}
    from {{ source }}

)
{%- endmacro %}
