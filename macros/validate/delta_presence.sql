{% test delta_presence(
    model, population, delta_max, delta_min=0, quasi_identifiers=none, column_name=none, unit=none, nulls='group',
    suppressed_marker=none, require_rows=false, show_values=false
) %}
    {%- set problems = [] -%}
    {%- set spec = veil._spec(model, veil._with_column(quasi_identifiers, column_name), problems, [], unit, nulls, suppressed_marker) -%}
    {%- do veil._read_population(spec, population, problems) -%}
    {%- do veil._read_common(spec, require_rows, show_values, problems) -%}
    {%- do spec.update({
        'delta_min': veil._number(delta_min, 'delta_min', problems, minimum=0, maximum=1),
        'delta_max': veil._number(delta_max, 'delta_max', problems, minimum=0, maximum=1),
    }) -%}
    {%- if not problems and spec.delta_min > spec.delta_max -%}
        {%- do problems.append("`delta_min` must not be above `delta_max`. Got: " ~ spec.delta_min ~ " and " ~ spec.delta_max) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('delta_presence', problems) -%}
    {%- endif -%}
    {{- adapter.dispatch('test_delta_presence', 'veil')(spec) -}}
{% endtest %}

{% macro default__test_delta_presence(spec) -%}
with
{{ veil._presences(spec) }},
validation_errors as (
    {{ veil._error_row(spec, 'presences', "'presence above delta_max'", 'presences.presence', spec.delta_max) }}
    where presences.presence > {{ spec.delta_max }} + 1e-9
    union all
    {{ veil._error_row(spec, 'presences', "'presence below delta_min'", 'presences.presence', spec.delta_min) }}
    where presences.presence < {{ spec.delta_min }} - 1e-9
    {{- veil._common_errors(spec) }}
)
select *
from validation_errors
{%- endmacro %}
