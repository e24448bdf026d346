{%- set tables = {'exact': 'veil_demo__stg_visits', 'cells of 2 km': 'veil_demo__visits_by_cell'} -%}
{%- for name, table in tables.items() %}
select
    '{{ name }}' as places,
    figures.*
from (
    {{ veil.unicity(ref(table), unit='person_id', point_columns=['lon', 'lat', 'hour'], points=4) | indent(4) }}
) as figures
{{ "union all" if not loop.last }}
{%- endfor %}
