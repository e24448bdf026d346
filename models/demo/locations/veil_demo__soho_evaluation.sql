{%- set masks = {
    'grid': 'grid',
    'cloak': 'cloak',
    'donut': {'kind': 'donut', 'minimum': 50, 'maximum': 100},
    'planar_laplace': {'kind': 'planar_laplace', 'epsilon': 25},
} -%}
with
{%- for name, mask in masks.items() %}

{{ name }}_figures as (

    {{ veil.geo_evaluate(
        ref('veil_demo__stg_soho_deaths'),
        ref('veil_demo__soho_' ~ name),
        key='death_id',
        radius=100,
        mask=mask,
    ) | indent(4) }}

),
{%- endfor %}

final as (
{% for name in masks %}
    select
        '{{ name }}' as mask,
        figures.measure,
        figures.bin,
        figures.value
    from {{ name }}_figures as figures
    {{ "union all" if not loop.last }}
{%- endfor %}

)

select * from final
