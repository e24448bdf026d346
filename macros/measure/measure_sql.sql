{#- One row with everything a policy asks to be measured on a table: what the release gate compares and records. -#}

{% macro measure_sql(relation, policy) -%}
{%- set people = veil._helper_name('people', policy.quasi_identifiers) -%}
{%- set row_count = veil._helper_name('row_count', policy.quasi_identifiers) -%}
with classes as (

    {{ veil.classes(relation, policy.quasi_identifiers, unit=veil._unit_name(policy), nulls=policy.nulls) | indent(4) }}

)

select
    count(*) as classes,
    coalesce(sum(classes.{{ people }}), 0) as people,
    coalesce(sum(classes.{{ row_count }}), 0) as row_count,
    min(classes.{{ people }}) as k
from classes
{%- endmacro %}

{#- Everything in which a measured row breaks the policy. -#}
{% macro policy_violations(policy, measured) %}
    {%- set violations = [] -%}
    {%- if measured.k is not none and measured.k < policy.k -%}
        {%- do violations.append("the smallest class has " ~ measured.k ~ " people, and `k` is " ~ policy.k) -%}
    {%- endif -%}
    {%- do return(violations) -%}
{% endmacro %}
