{{ veil.geo_grid(ref('veil_demo__stg_visits'), size=2000, unit='person_id') }}
