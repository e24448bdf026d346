{{ veil.anonymize(ref('veil_demo__stg_patients')) }}
