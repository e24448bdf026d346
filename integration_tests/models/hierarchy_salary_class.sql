-- depends_on: {{ ref('hierarchies') }}
{{ hierarchy_levels('salary-class', 1) }}
