{#- Everything in which the candidate breaks the policy: what failed, and by how much. Counts and column names only. -#}

{% macro _violations(measured, policy) %}
    {%- set violations = [] -%}
    {%- if policy.dp is not none -%}
        {%- do return(violations) -%}
    {%- endif -%}
    {%- for name in policy.quasi_identifiers -%}
        {%- set unmapped = measured['unmapped_' ~ loop.index0] -%}
        {%- set nulls = measured['nulls_' ~ loop.index0] -%}
        {%- if policy.on_unmapped == 'fail' and unmapped -%}
            {%- do violations.append(unmapped ~ " rows have a `" ~ name ~ "` that its hierarchy does not know. "
                ~ "Add the missing values to the hierarchy, or say `on_unmapped: suppress`") -%}
        {%- endif -%}
        {%- if policy.nulls == 'fail' and nulls -%}
            {%- do violations.append(nulls ~ " rows have no `" ~ name ~ "`, and the policy says `nulls: fail`. "
                ~ "Fill or remove them in the staging model, or say `nulls: group`") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if measured.rows_without_unit -%}
        {%- do violations.append(measured.rows_without_unit ~ " rows have no `" ~ policy.unit ~ "`, so it is not known whose they are. "
            ~ "Fill or remove them in the staging model") -%}
    {%- endif -%}
    {%- set links = veil._linking_columns(policy) -%}
    {%- if links and measured.rows_out > measured.people_out and policy.linked_because is none -%}
        {%- do violations.append(measured.rows_out ~ " rows of " ~ measured.people_out ~ " people leave with `" ~ links | join("`, `")
            ~ "`, which links the rows of a person, and k holds for each row by itself. Drop it, bring the staging model to one row a person, "
            ~ "or write down why it may be: `linked_because: \"…\"`") -%}
    {%- endif -%}
    {%- do violations.extend(veil.policy_violations(policy, measured)) -%}
    {%- if measured.suppressed_share > policy.suppress_up_to + 1e-9 -%}
        {%- do violations.append((measured.people_in - measured.people_out) ~ " of " ~ measured.people_in ~ " people ("
            ~ veil._percent(measured.suppressed_share) ~ ") would be left out, and `suppress_up_to` allows "
            ~ veil._percent(policy.suppress_up_to)) -%}
    {%- endif -%}
    {%- do return(violations) -%}
{% endmacro %}

{#- Released columns that say which rows are of one person. -#}
{% macro _linking_columns(policy) %}
    {%- set names = [] -%}
    {%- for column in policy.columns if column.mask.kind in ['pseudonym', 'token', 'fpe', 'fake'] -%}
        {%- do names.append(column.name) -%}
    {%- endfor -%}
    {%- do return(names) -%}
{% endmacro %}

{% macro _percent(share) %}
    {%- do return(('%.2f' | format(100 * share)) ~ " %") -%}
{% endmacro %}

{% macro _refuse(violations, measured, policy) %}
    {%- set ways = veil._ways_out(measured, policy) -%}
    {%- do veil._fail('release', ["not published, and the last good table stays as it was\n  - " ~ violations | join("\n  - ")
        ~ ("\nThe cheapest ways out:\n  - " ~ ways | join("\n  - ") if ways else "")], "model `" ~ model.name ~ "`") -%}
{% endmacro %}

{#- At most two changes of the policy that would have let this candidate through, the one that loses least first. -#}
{% macro _ways_out(measured, policy) %}
    {%- set ways = [] -%}
    {%- if measured.suppressed_share > policy.suppress_up_to and policy.levels is mapping -%}
        {%- for way in veil._levels_one_up(policy) if way.share <= policy.suppress_up_to + 1e-9 -%}
            {%- do ways.append("`levels." ~ way.name ~ ": " ~ way.level ~ "` leaves out " ~ veil._percent(way.share)) -%}
        {%- endfor -%}
        {%- set ways = ways[:1] -%}
        {%- if measured.suppressed_share <= 0.2 -%}
            {%- do ways.append("`suppress_up_to: " ~ veil._rounded_up(measured.suppressed_share) ~ "` accepts the people left out now") -%}
        {%- endif -%}
    {%- endif -%}
    {%- if ways | length < 2 and policy.levels is mapping -%}
        {%- do ways.append("`dbt run-operation veil.find_levels --args '{model: " ~ model.name ~ "}'` lists the levels that keep the policy") -%}
    {%- endif -%}
    {%- do return(ways[:2]) -%}
{% endmacro %}

{% macro _rounded_up(share) %}
    {%- set thousandths = (share * 1000) | round(0, 'ceil') | int -%}
    {%- do return(thousandths / 1000) -%}
{% endmacro %}

{#- For each quasi-identifier that can go one level up: the share of people that would then be left out, least first. -#}
{% macro _levels_one_up(policy) %}
    {%- set input = veil._input_relation() -%}
    {%- set ways = [] -%}
    {%- for column in policy.columns if column.role == 'quasi_identifier' -%}
        {%- set level = policy.levels[column.name] + 1 -%}
        {%- if column.hierarchy.top_level is not none and level <= column.hierarchy.top_level -%}
            {%- set raised = dict(policy, levels=dict(policy.levels)) -%}
            {%- do raised.levels.update({column.name: level}) -%}
            {%- set counted = veil._first_row(veil._suppressed_sql(input, raised)) -%}
            {%- do ways.append({'name': column.name, 'level': level, 'share': counted.people_below / counted.people if counted.people else 0}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(ways | sort(attribute='share')) -%}
{% endmacro %}

{#- People in classes below k at the policy's levels. Someone with rows in several classes counts in each. -#}
{% macro _suppressed_sql(input, policy) -%}
with source_rows as (

    select * from {{ input }}

),

generalized as (

    {{ veil._generalized_sql(policy) | indent(4) }}

),

classes as (

    {{ veil.classes('generalized', policy.quasi_identifiers, unit=veil._unit_name(policy), nulls=policy.nulls) | indent(4) }}

)

select
    coalesce(sum(classes.people), 0) as people,
    coalesce(sum(case when classes.people < {{ policy.k }} then classes.people end), 0) as people_below
from classes
{%- endmacro %}
