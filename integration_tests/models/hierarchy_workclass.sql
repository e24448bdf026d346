-- depends_on: {{ ref('hierarchies') }}
{{ hierarchy_levels('workclass', 2) }}
