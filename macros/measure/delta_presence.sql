{% macro delta_presence(relation, population, quasi_identifiers, unit=none, nulls='group', suppressed_marker=none) %}
    {%- set problems = [] -%}
    {%- set spec = veil._spec(relation, quasi_identifiers, problems, [], unit, nulls, suppressed_marker) -%}
    {%- do veil._read_population(spec, population, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('delta_presence', problems) -%}
    {%- endif -%}
    {{- return(adapter.dispatch('delta_presence', 'veil')(spec)) -}}
{% endmacro %}

{% macro default__delta_presence(spec) -%}
with
{{ veil._presences(spec) }}
select
    {%- for name in spec.quasi_identifiers %}
    presences.q_{{ loop.index }} as {{ veil._quote(name) }},
    {%- endfor %}
    presences.people as {{ veil._helper_name('people', spec.quasi_identifiers) }},
    presences.row_count as {{ veil._helper_name('row_count', spec.quasi_identifiers) }},
    presences.population_people as {{ veil._helper_name('population_people', spec.quasi_identifiers) }},
    presences.presence as {{ veil._helper_name('presence', spec.quasi_identifiers) }}
from presences
{%- endmacro %}

{#- For each class of the population, the share of it that is in the release: the belief that someone is in the table
    (Nergiz, Atzori and Clifton 2007). A class of the release that the population lacks has presence 1. -#}
{% macro _presences(spec) -%}
{{ veil._counted(spec) }},
{{ veil._classes(spec) }},
{{ veil._totals(spec) }},
{{ veil._population(spec) }},
both_tables as (
    select
        {{ veil._key_list(spec, 'classes') }},
        classes.people,
        classes.row_count,
        0 as population_people
    from classes
    union all
    select
        {{ veil._key_list(spec, 'population') }},
        0 as people,
        0 as row_count,
        population.people as population_people
    from population
),
presences as (
    select
        {{ veil._key_list(spec, 'both_tables') }},
        sum(both_tables.people) as people,
        sum(both_tables.row_count) as row_count,
        sum(both_tables.population_people) as population_people,
        case
            when sum(both_tables.people) >= sum(both_tables.population_people) then 1
            else {{ veil._double('sum(both_tables.people)') }} / sum(both_tables.population_people)
        end as presence
    from both_tables
    group by {{ veil._key_list(spec, 'both_tables') }}
)
{%- endmacro %}
