-- depends_on: {{ ref('veil_demo__diagnoses') }}

{{ veil.dp_aggregate(ref('veil_demo__stg_practice_visits')) }}
