-- depends_on: {{ ref('hierarchies') }}
{{ hierarchy_levels('native-country', 2) }}
