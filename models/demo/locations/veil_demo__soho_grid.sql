{{ veil.geo_grid(ref('veil_demo__stg_soho_deaths'), size=100, unit='death_id') }}
