-- no e-mail address, telephone number or patient number of the register is in the released table
with patients as (

    select * from {{ ref('veil_demo__patients') }}

),

released as (

    select * from {{ ref('veil_demo__patients_by_age') }}

),

validation_errors as (

    select count(*) as people
    from released
    inner join patients
        on released.patient_id in (patients.patient_id, patients.email, patients.phone)
    having count(*) > 0

)

select * from validation_errors
