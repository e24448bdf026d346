-- depends_on: {{ ref('hierarchies') }}
{{ hierarchy_levels('sex', 1) }}
