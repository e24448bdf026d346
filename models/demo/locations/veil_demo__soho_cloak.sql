{{ veil.geo_cloak(
    ref('veil_demo__stg_soho_deaths'),
    k=10,
    max_depth=4,
    unit='death_id',
    extent=[-0.1405, 51.5105, -0.132, 51.516],
) }}
