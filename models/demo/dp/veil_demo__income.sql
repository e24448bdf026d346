{{ veil.dp_aggregate(ref('veil_demo__stg_visits')) }}
