{#- How many people of an auxiliary relation are found in a release by their quasi-identifiers: one row of counts. -#}

{% macro linkage(relation, auxiliary, quasi_identifiers, release_id=none, auxiliary_id=none) %}
    {%- set problems = [] -%}
    {%- set keys = veil._names(quasi_identifiers, 'quasi_identifiers', problems) -%}
    {%- if (release_id is none) != (auxiliary_id is none) -%}
        {%- do problems.append("`release_id` and `auxiliary_id` must be given together, or neither") -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('linkage', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('linkage', 'veil')(relation, auxiliary, keys, release_id, auxiliary_id)) -%}
{% endmacro %}

{% macro default__linkage(relation, auxiliary, keys, release_id, auxiliary_id) -%}
with released as (

    select * from {{ relation }}

),

released_classes as (

    select
        {%- for name in keys %}
        released.{{ veil._quote(name) }} as q_{{ loop.index }},
        {%- endfor %}
        {%- if release_id is none %}
        count(*) as people,
        cast(null as {{ dbt.type_string() }}) as person
        {%- else %}
        count(distinct released.{{ veil._quote(release_id) }}) as people,
        min(cast(released.{{ veil._quote(release_id) }} as {{ dbt.type_string() }})) as person
        {%- endif %}
    from released
    group by {% for name in keys %}released.{{ veil._quote(name) }}{{ ", " if not loop.last }}{% endfor %}

),

auxiliary_classes as (

    select
        {%- for name in keys %}
        known.{{ veil._quote(name) }} as q_{{ loop.index }},
        {%- endfor %}
        {%- if auxiliary_id is not none %}
        cast(known.{{ veil._quote(auxiliary_id) }} as {{ dbt.type_string() }}) as person,
        {%- endif %}
        count(*) as people
    from {{ auxiliary }} as known
    group by {% for name in keys %}known.{{ veil._quote(name) }}{{ ", " if not loop.last }}{% endfor %}
        {%- if auxiliary_id is not none %}, known.{{ veil._quote(auxiliary_id) }}{% endif %}

),

figures as (

    select
        {{ 'sum(auxiliary_classes.people)' if auxiliary_id is none else 'count(*)' }} as auxiliary_people,
        sum(case when released_classes.people = 1 then {{ 'auxiliary_classes.people' if auxiliary_id is none else '1' }} else 0 end) as matched_uniquely,
        sum(case when released_classes.people = 1 and {{ 'auxiliary_classes.people = 1' if auxiliary_id is none
            else 'released_classes.person = auxiliary_classes.person' }} then 1 else 0 end) as matched_correctly
    from auxiliary_classes
    left join released_classes
        on {% for name in keys -%}
        {%- if not loop.first %}
        and {% endif -%}
        auxiliary_classes.q_{{ loop.index }} is not distinct from released_classes.q_{{ loop.index }}
        {%- endfor %}

)

select
    coalesce(figures.auxiliary_people, 0) as auxiliary_people,
    coalesce(figures.matched_uniquely, 0) as matched_uniquely,
    coalesce(figures.matched_correctly, 0) as matched_correctly,
    {{ veil._ratio('figures.matched_correctly', 'figures.auxiliary_people') }} as share_correct
from figures
{%- endmacro %}

{% test linkage(model, auxiliary, quasi_identifiers, release_id=none, auxiliary_id=none, max_share=0) %}
    {%- set problems = [] -%}
    {%- set max_share = veil._number(max_share, 'max_share', problems, minimum=0, maximum=1) -%}
    {%- if problems -%}
        {%- do veil._fail('linkage', problems) -%}
    {%- endif %}
with figures as (

    {{ veil.linkage(model, auxiliary, quasi_identifiers, release_id, auxiliary_id) | indent(4) }}

),

validation_errors as (

    select
        figures.auxiliary_people,
        figures.matched_uniquely,
        figures.matched_correctly,
        figures.share_correct
    from figures
    where figures.share_correct > {{ max_share }} + 1e-9

)

select
    validation_errors.auxiliary_people,
    validation_errors.matched_uniquely,
    validation_errors.matched_correctly,
    validation_errors.share_correct
from validation_errors
{% endtest %}
