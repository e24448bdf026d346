{{ config(materialized='view', schema='staging') }}

with visits as (

    select * from {{ ref('veil_demo__visits') }}

),

patients as (

    select * from {{ ref('veil_demo__stg_patients') }}

),

final as (

    select
        visits.patient_id,
        visits.region,
        visits.month,
        visits.stay,
        visits.income,
        patients.diagnosis,
    from visits
    left join patients
        on visits.patient_id = patients.patient_id

)

select * from final
