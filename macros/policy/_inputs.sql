{#- The nodes whose columns carry roles and that feed a model: the one that was passed, or all that it refers to. -#}

{% macro _inputs(node, relation=none) %}
    {%- if relation is not none -%}
        {%- do return([veil._node_of(relation, node)]) -%}
    {%- endif -%}
    {%- set inputs = [] -%}
    {%- for unique_id in node.depends_on.nodes -%}
        {%- set upstream = graph.nodes.get(unique_id) or graph.sources.get(unique_id) -%}
        {%- if upstream and veil._has_roles(upstream) -%}
            {%- do inputs.append(upstream) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(inputs) -%}
{% endmacro %}

{% macro _has_roles(node) %}
    {%- for column in node.columns.values() if veil._declared_policy(column) -%}
        {%- do return(true) -%}
    {%- endfor -%}
    {%- do return(false) -%}
{% endmacro %}

{#- The model, seed, snapshot or source behind a relation, among those the node refers to. In a unit test and behind an
    ephemeral model a reference is the name of a CTE, and under --empty it is a subquery: parts are compared, not text. -#}
{% macro _node_of(relation, node) %}
    {%- for unique_id in node.depends_on.nodes -%}
        {%- set upstream = graph.nodes.get(unique_id) or graph.sources.get(unique_id) -%}
        {%- if upstream and veil._is_relation_of(relation, upstream) -%}
            {%- do return(upstream) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do veil._fail('policy', ["the input " ~ relation ~ " is no model, seed, snapshot or source that this model refers to. "
        ~ "Pass it as `ref('…')` or `source('…', '…')`"], "model `" ~ node.name ~ "`") -%}
{% endmacro %}

{% macro _is_relation_of(relation, node) %}
    {%- set own = (node.get('alias') or node.get('identifier') or node.name) | lower -%}
    {%- set given = (relation if relation is string else relation.identifier) | lower -%}
    {%- if given.startswith('__dbt__cte__') -%}
        {%- do return(given[12:] in (own, node.name | lower)) -%}
    {%- endif -%}
    {%- do return(
        relation is not string
        and given == own
        and (relation.schema or '') | lower == (node.schema or '') | lower
        and (not relation.database or not node.database or relation.database | lower == node.database | lower)
    ) -%}
{% endmacro %}

{% macro _relation_of(node) %}
    {%- do return(api.Relation.create(database=node.database, schema=node.schema,
        identifier=node.get('alias') or node.get('identifier') or node.name)) -%}
{% endmacro %}
