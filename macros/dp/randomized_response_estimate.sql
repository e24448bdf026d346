{#- What randomized answers tell of the truth: for each value the unbiased number of people, or for a number within bounds the
    unbiased mean, with its standard error and 95 % interval (Warner 1965; Wang, Blocki, Li, Jha 2017, section 4.1). -#}

{% macro randomized_response_estimate(relation, column, epsilon, values=none, bounds=none) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- do veil._text(column, 'column', problems) -%}
    {%- set epsilon = veil._number(epsilon, 'epsilon', problems) -%}
    {%- if epsilon is not none and not 0 < epsilon <= 100 -%}
        {%- do problems.append(veil._must_be('epsilon', "above 0 and at most 100: what each record's answer was drawn with", epsilon)) -%}
    {%- endif -%}
    {%- if (values is none) == (bounds is none) -%}
        {%- do problems.append("give `values` or `bounds`, as in the release: one of them") -%}
    {%- elif values is not none -%}
        {%- do veil._dp_values(values, 'values', problems) -%}
    {%- else -%}
        {%- set bounds = veil._dp_range(bounds, 'bounds', problems) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('randomized_response_estimate', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('randomized_response_estimate', 'veil')(relation, column, epsilon, values, bounds)) -%}
{% endmacro %}

{% macro default__randomized_response_estimate(relation, column, epsilon, values, bounds) -%}
{%- set answers = values if values is not none else bounds -%}
{%- set k = answers | length -%}
with answers as (
    {%- for answer in answers %}

    select {{ veil._literal(answer) }} as answer
    {%- if not loop.last %}

    union all
    {%- endif %}
    {%- endfor %}

),

totals as (

    select
        cast(count(*) as {{ dbt.type_float() }}) as people,
        exp({{ epsilon }}) / (exp({{ epsilon }}) + {{ k - 1 }}) as truth,
        1 / (exp({{ epsilon }}) + {{ k - 1 }}) as lie
    from {{ relation }} as source_rows

),

counted as (

    select
        answers.answer,
        cast(count(source_rows.{{ veil._quote(column) }}) as {{ dbt.type_float() }}) as given
    from answers
    left join {{ relation }} as source_rows
        on source_rows.{{ veil._quote(column) }} = answers.answer
    group by answers.answer

),

estimates as (

    select
        counted.answer,
        counted.given,
        totals.people,
        (counted.given - totals.people * totals.lie) / (totals.truth - totals.lie) as estimate,
        case
            when totals.people = 0 then 0
            else sqrt(counted.given * (totals.people - counted.given) / totals.people) / (totals.truth - totals.lie)
        end as error
    from counted
    cross join totals

)
{% if bounds is none %}
select
    estimates.answer,
    estimates.given,
    estimates.estimate as people,
    estimates.error as people_scale,
    estimates.estimate - 1.96 * estimates.error as people_lo95,
    estimates.estimate + 1.96 * estimates.error as people_hi95
from estimates
{%- else %}
select
    estimates.people as answers,
    {{ bounds[0] }} + {{ bounds[1] - bounds[0] }} * estimates.estimate / estimates.people as mean,
    {{ bounds[1] - bounds[0] }} * estimates.error / estimates.people as mean_scale,
    {{ bounds[0] }} + {{ bounds[1] - bounds[0] }} * (estimates.estimate - 1.96 * estimates.error) / estimates.people as mean_lo95,
    {{ bounds[0] }} + {{ bounds[1] - bounds[0] }} * (estimates.estimate + 1.96 * estimates.error) / estimates.people as mean_hi95
from estimates
where estimates.answer = {{ veil._literal(bounds[1]) }}
    and estimates.people > 0
{%- endif %}
{%- endmacro %}
