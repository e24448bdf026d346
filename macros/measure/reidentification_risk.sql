{% macro reidentification_risk(
    relation, quasi_identifiers, population=none, unit=none, nulls='group', suppressed_marker=none
) %}
    {%- set problems = [] -%}
    {%- set spec = veil._spec(relation, quasi_identifiers, problems, [], unit, nulls, suppressed_marker) -%}
    {%- do veil._read_population(spec, population, problems, required=false) -%}
    {%- if problems -%}
        {%- do veil._fail('reidentification_risk', problems) -%}
    {%- endif -%}
    {{- return(adapter.dispatch('reidentification_risk', 'veil')(spec)) -}}
{% endmacro %}

{% macro default__reidentification_risk(spec) -%}
with
{{ veil._risks(spec) }}
select risk_summary.*
from risk_summary
{%- endmacro %}

{#- Prosecutor: the target is known to be in the table, so a class of f gives 1/f. Journalist and marketer: the target is
    anyone of the population, so its F people of the class share the risk (El Emam 2013). -#}
{% macro _risks(spec) -%}
{{ veil._counted(spec) }},
{{ veil._classes(spec) }},
{{ veil._totals(spec) }},
    {%- if spec.population is not none %}
{{ veil._population(spec) }},
    {%- endif %}
class_risks as (
    select
        {{ veil._key_list(spec, 'classes') }},
        classes.people,
        classes.row_count,
        1 / {{ veil._double('classes.people') }} as prosecutor_risk
        {%- if spec.population is not none %},
        coalesce(population.people, 0) as population_people,
        case
            when population.people > 1 then 1 / {{ veil._double('population.people') }}
            else 1
        end as journalist_risk
        {%- endif %}
    from classes
    {%- if spec.population is not none %}
    left join population
        on {{ veil._same_class(spec, 'classes', 'population') }}
    {%- endif %}
    where classes.people > 0
),
risk_summary as (
    select
        count(*) as classes,
        coalesce(sum(class_risks.people), 0) as people,
        coalesce(sum(class_risks.row_count), 0) as row_count,
        coalesce(max(class_risks.prosecutor_risk), 0) as max_risk,
        {{ veil._ratio('count(*)', 'sum(class_risks.people)') }} as mean_risk,
        coalesce(sum(case when class_risks.people = 1 then 1 else 0 end), 0) as unique_people,
        {{ veil._ratio('sum(case when class_risks.people = 1 then 1 else 0 end)', 'sum(class_risks.people)') }} as unique_share
        {%- if spec.population is not none %},
        coalesce(max(class_risks.journalist_risk), 0) as max_journalist_risk,
        {{ veil._ratio('sum(class_risks.people * class_risks.journalist_risk)', 'sum(class_risks.people)') }} as marketer_risk,
        coalesce(sum(case when class_risks.population_people = 0 then 1 else 0 end), 0) as classes_not_in_population
        {%- endif %}
    from class_risks
)
{%- endmacro %}
