{#- A table and not a view: the totals by PLD come from the plugin, which a reader outside dbt does not have. -#}
{{ config(materialized='table', enabled=((veil._setting('budgets') or {}) | length > 0)) }}

-- depends_on: {{ ref('veil__ledger') }}

with status as (

    {{ veil.budget_status() | indent(4) }}

),

final as (

    select
        status.*,
        current_timestamp as as_of
    from status

)

select * from final
