{{ config(materialized='view', enabled=((veil._setting('budgets') or {}) | length > 0)) }}

with ledger as (

    select * from {{ ref('veil__ledger') }}

),

endings as (

    select
        ledger.release_id,
        min(ledger.event) as ending
    from ledger
    where ledger.event in ('settle', 'refund', 'orphan')
    group by ledger.release_id

),

final as (

    select
        ledger.budget,
        coalesce(ledger.model, 'carried over by a reset') as model,
        ledger.consumer,
        sum(ledger.epsilon) as epsilon,
        sum(ledger.delta) as delta,
        count(*) filter (where ledger.event = 'reserve') as mechanisms,
        count(distinct ledger.release_id) as releases,
        count(distinct ledger.release_id) filter (where endings.ending = 'settle') as settled,
        count(distinct ledger.release_id) filter (where endings.ending = 'refund') as refunded,
        count(distinct ledger.release_id) filter (where coalesce(endings.ending, 'orphan') = 'orphan') as unsettled,
        min(ledger.recorded_at) as first_spent_at,
        max(ledger.recorded_at) as last_spent_at
    from ledger
    left join endings
        on ledger.release_id = endings.release_id
    where ledger.event in ('reserve', 'refund', 'reset')
        and ledger.budget is not null
    group by ledger.budget, ledger.model, ledger.consumer

)

select * from final
