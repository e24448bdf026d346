{{ veil.geo_donut(ref('veil_demo__stg_soho_deaths'), minimum=50, maximum=100, unit='death_id') }}
