{#- Post-processing: figures in their own units, their noise scale and 95 % interval. Nothing here reads the data again. -#}

{% macro _dp_final(plan, mechanisms) -%}
{%- set averaged = plan.measures | selectattr('kind', 'in', ['mean', 'variance', 'stddev']) | list -%}
{%- set drawn = 'selected_groups' if plan.selector is not none else 'noisy_groups' -%}
{%- set groups = 'ratios' if averaged else drawn -%}
{%- if averaged -%}
-- Noisy sums over noisy counts, with the least and the most that they are when each is off by its margin.
ratios as (

    select
        {{ drawn }}.*,
        {%- for measure in averaged %}
        {{- veil._dp_lines(veil._dp_ratios(measure, drawn, mechanisms)) }}
        {%- endfor %}
    from {{ drawn }}

),

{% endif -%}
-- Figures in their own units, each with its noise scale and its 95 % interval.
final as (

    select
        {%- for name in plan.group_by %}
        {{ groups }}.{{ veil._quote(name) }},
        {%- endfor %}
        {%- for measure in plan.measures if not measure.hidden %}
        {{- veil._dp_lines(veil._dp_figure(measure, groups, mechanisms)) }}
        {%- endfor %}
    from {{ groups }}
    {%- for measure in plan.measures if measure.kind in ('quantile', 'mode', 'top_k', 'histogram') %}
    inner join {{ veil._dp_name(measure) }}_chosen
        on {{ veil._dp_same_group(plan, groups, veil._dp_name(measure) ~ '_chosen') | trim }}
    {%- endfor %}

)

select
    {%- for name in plan.group_by %}
    final.{{ veil._quote(name) }},
    {%- endfor %}
    {%- for measure in plan.measures %}
    {%- for column in veil._dp_output_columns(measure) %}
    final.{{ column }},
    {%- endfor %}
    {%- endfor %}
from final
{%- if plan.group_by %}
order by {{ veil._dp_list(plan, 'final') }}
{%- endif %}
{%- endmacro %}

{% macro _dp_figure(measure, groups, mechanisms) -%}
{%- set name = measure.name -%}
{%- if measure.kind in ('count_units', 'count', 'sum') -%}
    {%- set part = measure.parts[0] -%}
    {%- set mechanism = mechanisms[part.name] -%}
    {%- set grid = measure.get('grid') or 1 -%}
    {%- set times = "" if grid == 1 else " * " ~ grid -%}
    {%- set figure = "cast(" ~ groups ~ "." ~ veil._dp_name(part) ~ " as double)" -%}
    {%- set margin = veil._dp_margin(mechanism) %}
        {{ figure }}{{ times }} as {{ name }},
        cast({{ mechanism.scale }}{{ times }} as double) as {{ name }}_scale,
        ({{ figure }} - {{ margin }}){{ times }} as {{ name }}_lo95,
        ({{ figure }} + {{ margin }}){{ times }} as {{ name }}_hi95,
    {%- if measure.clip is not none %}
        {{ veil._dp_clamped(figure ~ times, measure.clip[0], measure.clip[1]) }} as {{ name }}_clipped,
    {%- endif %}
{%- elif measure.kind in ('mean', 'variance', 'stddev') -%}
{{ veil._dp_moments(measure, groups, mechanisms) }}
{%- else -%}
    {%- for column in veil._dp_output_columns(measure) %}
        {{ veil._dp_name(measure) }}_chosen.{{ column }},
    {%- endfor %}
{%- endif -%}
{%- endmacro %}

{% macro _dp_clamped(expression, lower, upper) -%}
{%- set low = expression if lower is none else "greatest(" ~ expression ~ ", " ~ lower ~ ")" -%}
{{ low if upper is none else "least(" ~ low ~ ", " ~ upper ~ ")" }}
{%- endmacro %}

{#- A mean is the middle of the bounds plus the noisy sum of distances from it over the noisy count (Li, Lyu, Su, Yang 2016,
    section 2.5.5). A variance is the mean of squared distances less the square of the mean distance. Both are clamped to what
    the bounds allow, and the interval lets each noisy number miss its own with a part of the 5 %. -#}
{% macro _dp_moments(measure, groups, mechanisms) -%}
{%- set name = measure.name -%}
{%- set ratio = groups ~ '.' ~ veil._dp_name(measure) -%}
{%- set count = groups ~ '.' ~ veil._dp_name(measure.parts[0]) -%}
{%- set half = measure.grid / 2 -%}
{%- set middle = (measure.lower_steps + measure.upper_steps) * half -%}
{%- set radius = (measure.upper_steps - measure.lower_steps) * half -%}
{%- if measure.kind == 'mean' %}
        {{ veil._dp_clamped(middle ~ " + " ~ ratio ~ "__mean", measure.bounds[0], measure.bounds[1]) }} as {{ name }},
        {{ mechanisms[measure.parts[1].name].scale * half }} / greatest({{ count }}, 1) as {{ name }}_scale,
        {{ veil._dp_clamped(middle ~ " + " ~ ratio ~ "__mean_least", measure.bounds[0], measure.bounds[1]) }} as {{ name }}_lo95,
        {{ veil._dp_clamped(middle ~ " + " ~ ratio ~ "__mean_most", measure.bounds[0], measure.bounds[1]) }} as {{ name }}_hi95,
{%- else -%}
    {%- set most = radius * radius -%}
    {%- set root = "sqrt" if measure.kind == 'stddev' else "" -%}
    {%- set nearest = "greatest(0, " ~ ratio ~ "__mean_least, -" ~ ratio ~ "__mean_most)" -%}
    {%- set farthest = "greatest(-" ~ ratio ~ "__mean_least, " ~ ratio ~ "__mean_most)" -%}
    {%- set variance = veil._dp_clamped(most / 2 ~ " + " ~ ratio ~ "__square - pow(" ~ ratio ~ "__mean, 2)", 0, most) -%}
    {%- set scale = mechanisms[measure.parts[2].name].scale * half * half / 2 ~ " / greatest(" ~ count ~ ", 1)" %}
        {{ root }}({{ variance }}) as {{ name }},
        {%- if measure.kind == 'stddev' %}
        least({{ scale }} / (2 * greatest(sqrt({{ variance }}), {{ measure.grid }})), {{ radius }}) as {{ name }}_scale,
        {%- else %}
        {{ scale }} as {{ name }}_scale,
        {%- endif %}
        {{ root }}({{ veil._dp_clamped(most / 2 ~ " + " ~ ratio ~ "__square_least - pow(" ~ farthest ~ ", 2)", 0, most) }}) as {{ name }}_lo95,
        {{ root }}({{ veil._dp_clamped(most / 2 ~ " + " ~ ratio ~ "__square_most - pow(" ~ nearest ~ ", 2)", 0, most) }}) as {{ name }}_hi95,
{%- endif -%}
{%- endmacro %}

{#- The mean distance from the middle of the bounds, and for variances the mean squared distance from half its range. -#}
{% macro _dp_ratios(measure, groups, mechanisms) -%}
{%- set half = measure.grid / 2 -%}
{%- set radius = (measure.upper_steps - measure.lower_steps) * half -%}
{%- set count = groups ~ '.' ~ veil._dp_name(measure.parts[0]) -%}
{%- set few = veil._dp_margin(mechanisms[measure.parts[0].name], 1, 0.995) -%}
{%- set confidence = {'__mean': 0.955} if measure.kind == 'mean' else {'__mean': 0.985, '__square': 0.97} -%}
{%- for suffix, share in confidence.items() -%}
{%- set part = measure.parts[loop.index] -%}
{%- set step = half if loop.first else half * half / 2 -%}
{%- set limit = radius if loop.first else radius * radius / 2 -%}
{%- set name = veil._dp_name(measure) ~ suffix %}
{{- veil._dp_ratio(groups ~ '.' ~ veil._dp_name(part), count, veil._dp_margin(mechanisms[part.name], 1, share), few, step, limit, name) | trim if loop.first
    else veil._dp_lines(veil._dp_ratio(groups ~ '.' ~ veil._dp_name(part), count, veil._dp_margin(mechanisms[part.name], 1, share), few, step, limit, name)) }}
{%- endfor -%}
{%- endmacro %}

{#- A count that may be 0 says nothing: then the ratio is anything that the bounds allow. -#}
{% macro _dp_ratio(sum, count, off, few, step, limit, name) -%}
        {{ veil._dp_clamped(sum ~ " / greatest(" ~ count ~ ", 1) * " ~ step, -limit, limit) }} as {{ name }},
        case
            when {{ count }} <= {{ few }} then {{ -limit }}
            else greatest(least(({{ sum }} - {{ off }}) / ({{ count }} - {{ few }}), ({{ sum }} - {{ off }}) / ({{ count }} + {{ few }})) * {{ step }}, {{ -limit }})
        end as {{ name }}_least,
        case
            when {{ count }} <= {{ few }} then {{ limit }}
            else least(greatest(({{ sum }} + {{ off }}) / ({{ count }} - {{ few }}), ({{ sum }} + {{ off }}) / ({{ count }} + {{ few }})) * {{ step }}, {{ limit }})
        end as {{ name }}_most,
{%- endmacro %}
