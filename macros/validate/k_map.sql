{% test k_map(
    model, population, k, quasi_identifiers=none, column_name=none, unit=none, nulls='group', suppressed_marker=none,
    require_rows=false, show_values=false
) %}
    {%- set problems = [] -%}
    {%- set spec = veil._spec(model, veil._with_column(quasi_identifiers, column_name), problems, [], unit, nulls, suppressed_marker) -%}
    {%- do veil._read_population(spec, population, problems) -%}
    {%- do veil._read_common(spec, require_rows, show_values, problems) -%}
    {%- do spec.update({'k': veil._integer(k, 'k', problems, minimum=1)}) -%}
    {%- if problems -%}
        {%- do veil._fail('k_map', problems) -%}
    {%- endif -%}
    {{- adapter.dispatch('test_k_map', 'veil')(spec) -}}
{% endtest %}

{% macro default__test_k_map(spec) -%}
with
{{ veil._mapped(spec) }},
validation_errors as (
    {{ veil._error_row(spec, 'mapped', "'fewer than k people of the population'", 'mapped.population_people', spec.k) }}
    where mapped.population_people < {{ spec.k }}
    {{- veil._common_errors(spec) }}
)
select *
from validation_errors
{%- endmacro %}
