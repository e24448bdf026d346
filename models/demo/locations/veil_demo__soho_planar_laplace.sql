{{ veil.geo_planar_laplace(
    ref('veil_demo__stg_soho_deaths'),
    epsilon=25,
    unit='death_id',
    unaccounted_because='the map has been public since 1854',
) }}
