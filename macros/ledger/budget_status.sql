{#- SELECT: every budget, one row for each of its limits, with its totals by every accounting. Read through the door, so only
    where the plugin is. -#}

{% macro budget_status() -%}
{%- if execute -%}{%- do veil._require_udf('budget_status', 'veil_budget_status') -%}{%- endif -%}
{{ adapter.dispatch('budget_status', 'veil')() }}
{%- endmacro %}

{% macro default__budget_status() -%}
with answer as (

    select unnest(from_json(
        json_extract({{ veil._door_call('veil_budget_status', {}) }}, '$.rows'),
        '[{
            "budget": "VARCHAR", "scope": "VARCHAR", "unit": "VARCHAR", "accounting": "VARCHAR", "limit_epsilon": "VARCHAR",
            "limit_delta": "VARCHAR", "spent_sum": "VARCHAR", "spent_delta": "VARCHAR", "spent_zcdp": "DOUBLE", "spent_pld": "DOUBLE",
            "spent_epsilon": "DOUBLE", "left_epsilon": "DOUBLE", "mechanisms": "BIGINT", "orphans": "BIGINT", "exceeded": "BOOLEAN"
        }]'
    )) as status

)

select
    answer.status.budget as budget,
    answer.status.scope as scope,
    answer.status.unit as unit,
    answer.status.accounting as accounting,
    cast(answer.status.limit_epsilon as decimal(38, 12)) as limit_epsilon,
    cast(answer.status.limit_delta as decimal(38, 30)) as limit_delta,
    cast(answer.status.spent_sum as decimal(38, 12)) as spent_sum,
    cast(answer.status.spent_delta as decimal(38, 30)) as spent_delta,
    answer.status.spent_zcdp as spent_zcdp,
    answer.status.spent_pld as spent_pld,
    answer.status.spent_epsilon as spent_epsilon,
    answer.status.left_epsilon as left_epsilon,
    answer.status.mechanisms as mechanisms,
    answer.status.orphans as orphans,
    answer.status.exceeded as exceeded
from answer
{%- endmacro %}
