{{ config(materialized='view', schema='staging') }}

with patients as (

    select * from {{ ref('veil_demo__patients') }}

),

final as (

    -- the day of birth serves no release, and so goes no further than the seed
    select
        patients.patient_id,
        patients.full_name,
        patients.email,
        patients.phone,
        patients.zip,
        patients.age,
        patients.sex,
        patients.diagnosis,
    from patients

)

select * from final
