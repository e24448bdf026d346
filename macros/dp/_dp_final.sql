{#- Post-processing: figures in their own units, their noise scale and 95 % interval. Nothing here reads the data again. -#}

{% macro _dp_final(plan, mechanisms) -%}
{%- set groups = 'selected_groups' if plan.selector is not none else 'noisy_groups' -%}
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
    algorithm 2.3). A variance is the mean of squared distances less the square of the mean distance. Clamped to what the
    bounds allow. The interval lets each noisy number miss its own with a part of 5 %. -#}
{% macro _dp_moments(measure, groups, mechanisms) -%}
{%- set name = measure.name -%}
{%- set half = measure.grid / 2 -%}
{%- set middle = (measure.lower_steps + measure.upper_steps) * half -%}
{%- set radius = (measure.upper_steps - measure.lower_steps) * half -%}
{%- set counted = mechanisms[measure.parts[0].name] -%}
{%- set summed = mechanisms[measure.parts[1].name] -%}
{%- set n = "cast(" ~ groups ~ "." ~ veil._dp_name(measure.parts[0]) ~ " as double)" -%}
{%- set s = "cast(" ~ groups ~ "." ~ veil._dp_name(measure.parts[1]) ~ " as double)" -%}
{%- if measure.kind == 'mean' -%}
    {%- set few = veil._dp_margin(counted, 1, 0.995) -%}
    {%- set off = veil._dp_margin(summed, 1, 0.955) -%}
    {%- set figure = middle ~ " + " ~ veil._dp_ratio(s, n, half, radius) -%}
    {%- set low = middle ~ " + " ~ veil._dp_lower(s ~ " - " ~ off, n, few, half, radius) -%}
    {%- set high = middle ~ " + " ~ veil._dp_upper(s ~ " + " ~ off, n, few, half, radius) %}
        {{ veil._dp_clamped(figure, measure.bounds[0], measure.bounds[1]) }} as {{ name }},
        {{ summed.scale * half }} / greatest({{ n }}, 1) as {{ name }}_scale,
        {{ veil._dp_clamped(low, measure.bounds[0], measure.bounds[1]) }} as {{ name }}_lo95,
        {{ veil._dp_clamped(high, measure.bounds[0], measure.bounds[1]) }} as {{ name }}_hi95,
{%- else -%}
    {%- set squared = mechanisms[measure.parts[2].name] -%}
    {%- set q = "cast(" ~ groups ~ "." ~ veil._dp_name(measure.parts[2]) ~ " as double)" -%}
    {%- set few = veil._dp_margin(counted, 1, 0.995) -%}
    {%- set off = veil._dp_margin(summed, 1, 0.985) -%}
    {%- set far = veil._dp_margin(squared, 1, 0.97) -%}
    {%- set part = half * half / 2 -%}
    {%- set most = radius * radius / 2 -%}
    {%- set mean = veil._dp_ratio(s, n, half, radius) -%}
    {%- set mean_low = veil._dp_lower(s ~ " - " ~ off, n, few, half, radius) -%}
    {%- set mean_high = veil._dp_upper(s ~ " + " ~ off, n, few, half, radius) -%}
    {%- set nearest = "greatest(0, " ~ mean_low ~ ", -(" ~ mean_high ~ "))" -%}
    {%- set farthest = "greatest(abs(" ~ mean_low ~ "), abs(" ~ mean_high ~ "))" -%}
    {%- set figure = most ~ " + " ~ veil._dp_ratio(q, n, part, most) ~ " - pow(" ~ mean ~ ", 2)" -%}
    {%- set low = most ~ " + " ~ veil._dp_lower(q ~ " - " ~ far, n, few, part, most) ~ " - pow(" ~ farthest ~ ", 2)" -%}
    {%- set high = most ~ " + " ~ veil._dp_upper(q ~ " + " ~ far, n, few, part, most) ~ " - pow(" ~ nearest ~ ", 2)" -%}
    {%- set root = "sqrt" if measure.kind == 'stddev' else "" %}
        {{ root }}({{ veil._dp_clamped(figure, 0, radius * radius) }}) as {{ name }},
        {{ squared.scale * part }} / greatest({{ n }}, 1) as {{ name }}_scale,
        {{ root }}({{ veil._dp_clamped(low, 0, radius * radius) }}) as {{ name }}_lo95,
        {{ root }}({{ veil._dp_clamped(high, 0, radius * radius) }}) as {{ name }}_hi95,
{%- endif -%}
{%- endmacro %}

{#- A noisy sum of steps over a noisy count, within the radius that the bounds allow. -#}
{% macro _dp_ratio(sum, count, step, radius) -%}
least(greatest(({{ sum }}) / greatest({{ count }}, 1) * {{ step }}, {{ -radius }}), {{ radius }})
{%- endmacro %}

{#- The least and the most that the ratio can be when the count is off by `few`. A count that may be 0 says nothing. -#}
{% macro _dp_lower(sum, count, few, step, radius) -%}
(case when {{ count }} - {{ few }} < 1 then {{ -radius }} else greatest(least(({{ sum }}) / ({{ count }} - {{ few }}), ({{ sum }}) / ({{ count }} + {{ few }})) * {{ step }}, {{ -radius }}) end)
{%- endmacro %}

{% macro _dp_upper(sum, count, few, step, radius) -%}
(case when {{ count }} - {{ few }} < 1 then {{ radius }} else least(greatest(({{ sum }}) / ({{ count }} - {{ few }}), ({{ sum }}) / ({{ count }} + {{ few }})) * {{ step }}, {{ radius }}) end)
{%- endmacro %}
