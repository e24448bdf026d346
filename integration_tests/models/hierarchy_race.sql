-- depends_on: {{ ref('hierarchies') }}
{{ hierarchy_levels('race', 1) }}
