-- Months that were made consistent sum to their region, whatever the noise was.
with consistent as (

    select * from {{ ref('veil_demo__visits_consistent') }}

),

validation_errors as (

    select consistent.region
    from consistent
    group by consistent.region
    having
        abs(sum(case when consistent.month is null then consistent.visits_consistent else -consistent.visits_consistent end)) > 1e-6
        or abs(sum(case when consistent.month is null then consistent.visits_non_negative else -consistent.visits_non_negative end)) > 1e-6
        or min(consistent.visits_non_negative) < 0

)

select * from validation_errors
