{#- The node behind `ref('…')` or `source('…', '…')` written in YAML, if it is public: neither it nor anything it is built
    from has a unit among its columns. A list that was read off people's rows tells who is in them. -#}

{% macro _public_node(text, where, problems, reader) %}
    {%- set found = modules.re.fullmatch("(ref|source)\\(\\s*['\"]([^'\"]+)['\"]\\s*(?:,\\s*['\"]([^'\"]+)['\"]\\s*)?\\)", text | trim) -%}
    {%- if not found -%}
        {%- do problems.append(veil._must_be(where, "`ref('…')` or `source('…', '…')`", text)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set kind = found.group(1) -%}
    {%- set first = found.group(2) -%}
    {%- set second = found.group(3) -%}
    {%- for node in (graph.sources if kind == 'source' else graph.nodes).values() -%}
        {%- if kind == 'source' and node.source_name == first and node.name == second
            or kind == 'ref' and node.resource_type in ('model', 'seed', 'snapshot') and node.name == (second or first)
                and (second is none or node.package_name == first) -%}
            {%- set private = veil._unit_upstream(node, []) -%}
            {%- if private is not none -%}
                {%- do problems.append("`" ~ where ~ "` must be public, and `" ~ node.name ~ "` is " ~ ("built from `" ~ private ~ "`, which holds people"
                    if private != node.name else "a relation of people") ~ ". Keep the list in a seed of its own") -%}
            {%- elif node.unique_id not in reader.depends_on.nodes -%}
                {%- do problems.append("`" ~ where ~ "` names `" ~ node.name ~ "`, which dbt does not see from here. Add this line to the model's SQL:\n"
                    ~ "      -- depends_on: {{ " ~ text | trim ~ " }}") -%}
            {%- endif -%}
            {%- do return({'name': node.name, 'resource_type': node.resource_type, 'package_name': node.package_name,
                'source_name': node.get('source_name')}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do problems.append("`" ~ where ~ "` names " ~ text | trim ~ ", which is not in the project") -%}
    {%- do return(none) -%}
{% endmacro %}

{#- The name of the first node, from this one upstream, that has a column with the role of a unit; none if there is none. -#}
{% macro _unit_upstream(node, seen) %}
    {%- if veil._guards_of(node, []) -%}
        {%- do return(node.name) -%}
    {%- endif -%}
    {%- for column in node.columns.values() -%}
        {%- if veil._declared_policy(column).get('role') in ('unit', 'identifier') -%}
            {%- do return(node.name) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for unique_id in (node.get('depends_on') or {}).get('nodes') or [] if unique_id not in seen -%}
        {%- do seen.append(unique_id) -%}
        {%- set upstream = graph.nodes.get(unique_id) or graph.sources.get(unique_id) -%}
        {%- set private = veil._unit_upstream(upstream, seen) if upstream else none -%}
        {%- if private is not none -%}
            {%- do return(private) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(none) -%}
{% endmacro %}
