-- depends_on: {{ ref('hierarchies') }}
{{ hierarchy_levels('age', 4) }}
