{% macro classes(relation, quasi_identifiers, unit=none, nulls='group', suppressed_marker=none, weight=none) %}
    {%- set problems = [] -%}
    {%- set spec = veil._spec(relation, quasi_identifiers, problems, [], unit, nulls, suppressed_marker, weight=weight) -%}
    {%- if problems -%}
        {%- do veil._fail('classes', problems) -%}
    {%- endif -%}
    {{- return(adapter.dispatch('classes', 'veil')(spec)) -}}
{% endmacro %}

{% macro default__classes(spec) -%}
with {{ veil._counted(spec) }},
{{ veil._classes(spec) }}
select
    {%- for name in spec.quasi_identifiers %}
    classes.q_{{ loop.index }} as {{ veil._quote(name) }},
    {%- endfor %}
    {%- if spec.nulls == 'fail' %}
    -- a class with a NULL counts for nobody, so no threshold holds for it
    case when {{ veil._has_null(spec, 'classes') }} then 0 else classes.people end as {{ veil._helper_name('people', spec.quasi_identifiers) }},
    {%- else %}
    classes.people as {{ veil._helper_name('people', spec.quasi_identifiers) }},
    {%- endif %}
    classes.row_count as {{ veil._helper_name('row_count', spec.quasi_identifiers) }}
from classes
{%- endmacro %}
