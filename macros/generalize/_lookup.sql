{#- A seed or any relation with one row a value and one column a level, finest first, as ARX writes it. The last column
    is the top level and holds one label. Values are compared as text. -#}

{% macro _check_lookup(spec, problems) %}
    {%- set relation = veil._lookup_relation(spec.get('relation'), problems) -%}
    {%- set columns = veil._names(spec.columns, 'columns', problems) if spec.get('columns') is not none else [] -%}
    {%- if columns | length == 1 -%}
        {%- do problems.append(veil._must_be('columns', "the column of the value and one column a level", spec.columns)) -%}
    {%- endif -%}
    {%- if relation is none or not execute -%}
        {%- do return({'relation': relation, 'columns': columns, 'top_level': columns | length - 1 if columns else none}) -%}
    {%- endif -%}
    {%- set existing = adapter.get_relation(database=relation.database, schema=relation.schema, identifier=relation.identifier) -%}
    {%- if existing is none and not columns -%}
        {%- do problems.append("relation " ~ relation ~ " does not exist yet, so its levels are not known. Build it first, or declare `columns`") -%}
        {%- do return({'relation': relation, 'columns': [], 'top_level': none}) -%}
    {%- elif existing is not none -%}
        {%- set present = adapter.get_columns_in_relation(existing) | map(attribute='name') | list -%}
        {%- set columns = columns or veil._level_columns(present, relation, problems) -%}
        {%- set missing = columns | reject('in', present) | list -%}
        {%- if missing -%}
            {%- do problems.append("relation " ~ relation ~ " has no column `" ~ missing | join("`, `") ~ "`; it has `" ~ present | join("`, `") ~ "`") -%}
        {%- elif columns -%}
            {%- do veil._check_lookup_rows(existing, columns, problems) -%}
        {%- endif -%}
    {%- endif -%}
    {%- do return({'relation': existing or relation, 'columns': columns, 'top_level': columns | length - 1 if columns else none}) -%}
{% endmacro %}

{#- A relation, or the name of a model or seed, or [package, name]. -#}
{% macro _lookup_relation(given, problems) %}
    {%- if given is string and given | trim -%}
        {%- do return(veil._ref_anywhere(given)) -%}
    {%- elif given is not string and given.identifier is defined -%}
        {%- do return(given) -%}
    {%- elif given is sequence and given is not string and given | length == 2 -%}
        {%- do return(veil._ref_anywhere(given[1], given[0])) -%}
    {%- endif -%}
    {%- do problems.append(veil._must_be('relation', "the name of a seed or model, or [package, name]", given)) -%}
    {%- do return(none) -%}
{% endmacro %}

{#- A ref also in a hook, which dbt lets refer only to what its own text names: there the graph tells. -#}
{% macro _ref_anywhere(name, package=none) %}
    {%- if execute and model is defined and model.resource_type == 'operation' -%}
        {%- for node in graph.nodes.values() if node.resource_type in ('model', 'seed', 'snapshot') and node.name == name
                and package in (none, node.package_name) -%}
            {%- do return(veil._relation_of(node)) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return(ref(name) if package is none else ref(package, name)) -%}
{% endmacro %}

{#- level_0, level_1, … as far as they go. -#}
{% macro _level_columns(present, relation, problems) %}
    {%- set columns = [] -%}
    {%- for i in range(present | length) if 'level_' ~ i in present and i == columns | length -%}
        {%- do columns.append('level_' ~ i) -%}
    {%- endfor -%}
    {%- if columns | length < 2 -%}
        {%- do problems.append("relation " ~ relation ~ " has no columns level_0, level_1, …; it has `" ~ present | join("`, `")
            ~ "`. Declare `columns`, the value first; or, if its file has no header, put one on top") -%}
        {%- do return([]) -%}
    {%- endif -%}
    {%- do return(columns) -%}
{% endmacro %}

{% macro _check_lookup_rows(relation, columns, problems) %}
    {%- if flags.EMPTY -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- for violation in run_query(veil.hierarchy_violations(relation, columns)).rows -%}
        {%- do problems.append("relation " ~ relation ~ ", column `" ~ columns[violation[1] | int] ~ "`: " ~ violation[0]
            ~ " (" ~ (violation[2] | int) ~ ")") -%}
    {%- endfor -%}
{% endmacro %}

{#- Makes the model that calls this depend on the relation that a hierarchy reads, at parse time. -#}
{% macro _depend_on_lookup(name_or_mapping) %}
    {%- set declared = veil._setting('hierarchies') -%}
    {%- set spec = (declared.get(name_or_mapping) if declared is mapping else none) if name_or_mapping is string else name_or_mapping -%}
    {%- if spec is mapping and spec.get('relation') -%}
        {%- do veil._lookup_relation(spec.get('relation'), []) -%}
    {%- endif -%}
{% endmacro %}

{#- The same for all lookups that are declared: which of them a policy needs is known only when the YAML of its input can
    be read, and then it is too late for dbt to order the run. What is made from data reads the input, which is there. -#}
{% macro _depend_on_lookups() %}
    {%- set declared = veil._setting('hierarchies') -%}
    {%- for name, spec in (declared.items() if declared is mapping else []) if spec is mapping and spec.get('kind') == 'lookup' -%}
        {%- do veil._depend_on_lookup(name) -%}
    {%- endfor -%}
{% endmacro %}

{#- A subquery that gives at most one label. Its columns are renamed, so that no name in it can capture the outer value. -#}
{% macro _label_lookup(value, checked, level) %}
    {%- set type = dbt.type_string() -%}
    {%- set found -%}
(
        select max(veil_lookup.veil_label)
        from (
            select
                cast(level_rows.{{ veil._quote(checked.columns[0]) }} as {{ type }}) as veil_value,
                cast(level_rows.{{ veil._quote(checked.columns[level]) }} as {{ type }}) as veil_label
            from {{ checked.relation }} as level_rows
        ) as veil_lookup
        where veil_lookup.veil_value = cast({{ value }} as {{ type }})
    )
    {%- endset -%}
    {%- do return({'otherwise': found | trim, 'partial': true}) -%}
{% endmacro %}
