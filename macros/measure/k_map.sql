{% macro k_map(relation, population, quasi_identifiers, unit=none, nulls='group', suppressed_marker=none) %}
    {%- set problems = [] -%}
    {%- set spec = veil._spec(relation, quasi_identifiers, problems, [], unit, nulls, suppressed_marker) -%}
    {%- do veil._read_population(spec, population, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('k_map', problems) -%}
    {%- endif -%}
    {{- return(adapter.dispatch('k_map', 'veil')(spec)) -}}
{% endmacro %}

{% macro default__k_map(spec) -%}
with
{{ veil._mapped(spec) }}
select
    {%- for name in spec.quasi_identifiers %}
    mapped.q_{{ loop.index }} as {{ veil._quote(name) }},
    {%- endfor %}
    mapped.people as {{ veil._helper_name('people', spec.quasi_identifiers) }},
    mapped.row_count as {{ veil._helper_name('row_count', spec.quasi_identifiers) }},
    mapped.population_people as {{ veil._helper_name('population_people', spec.quasi_identifiers) }}
from mapped
{%- endmacro %}

{#- Each class of the release with the people of the population that share its quasi-identifiers. -#}
{% macro _mapped(spec) -%}
{{ veil._counted(spec) }},
{{ veil._classes(spec) }},
{{ veil._totals(spec) }},
{{ veil._population(spec) }},
mapped as (
    select
        classes.*,
        coalesce(population.people, 0) as population_people
    from classes
    left join population
        on {{ veil._same_class(spec, 'classes', 'population') }}
)
{%- endmacro %}
