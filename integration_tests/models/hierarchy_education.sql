-- depends_on: {{ ref('hierarchies') }}
{{ hierarchy_levels('education', 3) }}
