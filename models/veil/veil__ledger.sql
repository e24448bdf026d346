{{ config(
    materialized='view',
    enabled=((veil._setting('budgets') or {}) | length > 0),
    pre_hook={'sql': "{% do veil._create_ledger() %}", 'transaction': false},
) }}

select
    ledger.seq,
    ledger.recorded_at,
    ledger.event,
    ledger.release_id,
    ledger.budget,
    ledger.model,
    ledger.consumer,
    ledger.block,
    ledger.query,
    ledger.mechanism,
    ledger.epsilon,
    ledger.delta,
    ledger.parameters,
    ledger.policy_hash,
    ledger.invocation_id,
    ledger.actor,
    ledger.reason,
    ledger.seeded,
    ledger.previous_hash,
    ledger.row_hash
from {{ veil._ledger_relation() }} as ledger
