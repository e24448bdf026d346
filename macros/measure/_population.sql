{#- A second relation that is compared class by class: the population a release was drawn from. -#}

{% macro _read_population(spec, population, problems, required=true) %}
    {%- do spec.update({'population': population}) -%}
    {%- if population is none and not required -%}
        {%- do return(none) -%}
    {%- elif not veil._is_relation(population) -%}
        {%- do problems.append(veil._must_be('population', "a relation with the same quasi-identifiers, generalised alike", population)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- if spec.nulls == 'wildcard' -%}
        {%- do problems.append("`nulls: wildcard` does not go with `population`: it would match a NULL with everybody") -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set types = veil._check_columns(population, spec.quasi_identifiers, problems, "population column") -%}
    {%- set counts_people = spec.unit is not none and spec.unit | lower in types -%}
    {%- do spec.update({'population_spec': dict(spec, relation=population, sensitive=[], unit=spec.unit if counts_people else none, weight=none)}) -%}
{% endmacro %}

{% macro _population(spec) -%}
population as (
    with
    {{ veil._counted(spec.population_spec) | indent(4) }},
    {{ veil._classes(spec.population_spec) | indent(4) }}
    select classes.*
    from classes
)
{%- endmacro %}
