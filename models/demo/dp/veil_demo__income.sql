{{ veil.dp_aggregate(ref('veil_demo__stg_practice_visits')) }}
