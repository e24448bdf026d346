-- depends_on: {{ ref('hierarchies') }}
{{ hierarchy_levels('occupation', 2) }}
