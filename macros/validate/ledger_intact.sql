{% test ledger_intact(model) %}
    {%- if execute -%}{%- do veil._require_udf('ledger_intact', 'veil_verify_ledger') -%}{%- endif -%}
-- The ledger itself is read, with its exported head, not {{ model }}.
with validation_errors as (

    select unnest(from_json(
        json_extract({{ veil._door_call('veil_verify_ledger', {}) }}, '$.problems'), '["VARCHAR"]'
    )) as problem

)

select * from validation_errors
{% endtest %}
