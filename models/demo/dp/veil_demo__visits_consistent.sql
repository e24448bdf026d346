{#- Two releases at two levels, made to agree. It reads what is released, and costs nothing. -#}

with all_levels as (

    select
        months.region,
        months.month,
        months.visits,
        months.visits_scale,
    from {{ ref('veil_demo__visits_by_region_and_month') }} as months

    union all

    select
        regions.region,
        null as month,
        regions.visits,
        regions.visits_scale,
    from {{ ref('veil_demo__visits_by_region') }} as regions

)

select * from (
    {{ veil.dp_consistent('all_levels', ['region', 'month'], 'visits', non_negative=true) | indent(4) }}
) as consistent
