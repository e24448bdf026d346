{% test unicity(model, unit, point_columns, max_unicity, points=4, draws=1, seed=0) %}
    {%- set problems = [] -%}
    {%- set spec = veil._unicity_spec(model, unit, point_columns, points, draws, seed, problems) -%}
    {%- do spec.update({'max_unicity': veil._number(max_unicity, 'max_unicity', problems, minimum=0, maximum=1)}) -%}
    {%- if problems -%}
        {%- do veil._fail('unicity', problems) -%}
    {%- endif -%}
    {{- adapter.dispatch('test_unicity', 'veil')(spec) -}}
{% endtest %}

{% macro default__test_unicity(spec) -%}
with {{ veil._unicity_steps(spec) }},
validation_errors as (
    select
        'larger share of people singled out by their points than max_unicity' as problem,
        unicity_figures.unicity as measured,
        {{ spec.max_unicity }} as threshold
    from unicity_figures
    where unicity_figures.unicity > {{ spec.max_unicity }} + 1e-9
)
select *
from validation_errors
{%- endmacro %}
