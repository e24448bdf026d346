-- depends_on: {{ ref('hierarchies') }}
{{ hierarchy_levels('marital-status', 2) }}
