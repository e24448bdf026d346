{{ veil.anonymize(ref('census')) }}
