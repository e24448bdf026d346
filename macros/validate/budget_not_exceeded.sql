{% test budget_not_exceeded(model, budget=none) %}
    {%- set problems = [] -%}
    {%- set known = veil._budgets().keys() | list -%}
    {%- if budget is not none and budget not in known -%}
        {%- do problems.append(veil._must_be('budget', "one of `veil__budgets`: " ~ known | join(", "), budget) ~ veil._nearest(budget, known)) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('budget_not_exceeded', problems) -%}
    {%- endif -%}
-- What was spent is read from the ledger as it is now, not from {{ model }}.
with status as (

    {{ veil.budget_status() | indent(4) }}

),

validation_errors as (

    select
        status.budget,
        status.scope,
        status.spent_epsilon,
        status.limit_epsilon,
        status.spent_delta,
        status.limit_delta
    from status
    where status.exceeded
    {%- if budget is not none %}
        and status.budget = {{ veil._literal(budget) }}
    {%- endif %}

)

select * from validation_errors
{% endtest %}
