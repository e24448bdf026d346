{#- A tree written in YAML: groups of groups of values, all values equally deep. Values are compared as text. -#}

{% macro _check_tree(spec, problems) %}
    {%- set found = problems | length -%}
    {%- set leaves = [] -%}
    {%- if spec.get('tree') is not mapping or not spec.tree -%}
        {%- do problems.append(veil._must_be('tree', "a mapping of groups, such as {tree: {Health: [nurse, doctor], Food: [cook]}}", spec.get('tree'))) -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- do veil._tree_leaves(spec.tree, [], leaves, problems) -%}
    {%- set depth = leaves[0] | length if leaves else 0 -%}
    {%- set seen, parents = {}, {} -%}
    {%- for leaf in leaves -%}
        {%- if leaf | length != depth -%}
            {%- do problems.append("`tree` must have all values equally deep. '" ~ leaf[0] ~ "' lies under " ~ (leaf | length - 1)
                ~ " groups, '" ~ leaves[0][0] ~ "' under " ~ (depth - 1)) -%}
        {%- endif -%}
        {%- if leaf[0] in seen -%}
            {%- do problems.append("`tree` has the value '" ~ leaf[0] ~ "' twice") -%}
        {%- endif -%}
        {%- do seen.update({leaf[0]: true}) -%}
        {%- for i in range(1, leaf | length - 1) -%}
            {%- set key = i ~ ':' ~ leaf[i] -%}
            {%- if parents.get(key, leaf[i + 1]) != leaf[i + 1] -%}
                {%- do problems.append("`tree` has the group '" ~ leaf[i] ~ "' under both '" ~ parents[key] ~ "' and '" ~ leaf[i + 1]
                    ~ "', so the levels do not nest") -%}
            {%- endif -%}
            {%- do parents.update({key: leaf[i + 1]}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if not leaves and problems | length == found -%}
        {%- do problems.append("`tree` has no value") -%}
    {%- endif -%}
    {%- do return({'leaves': leaves, 'top_level': depth}) -%}
{% endmacro %}

{#- Adds [value, innermost group, …, outermost group] for each value. -#}
{% macro _tree_leaves(node, groups, leaves, problems) %}
    {%- if node is mapping -%}
        {%- for group, inner in node.items() -%}
            {%- set label = veil._tree_text(group, problems) -%}
            {%- do veil._check_label(label, problems) -%}
            {%- if not inner -%}
                {%- do problems.append("`tree` has the empty group '" ~ label ~ "'") -%}
            {%- else -%}
                {%- do veil._tree_leaves(inner, [label] + groups, leaves, problems) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {%- for value in veil._list(node) -%}
            {%- if value is mapping -%}
                {%- do veil._tree_leaves(value, groups, leaves, problems) -%}
            {%- else -%}
                {%- do leaves.append([veil._tree_text(value, problems)] + groups) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}

{#- YAML reads a bare no, yes, on or off as a truth value: Norway's code would be lost. -#}
{% macro _tree_text(value, problems) %}
    {%- if value is none or value is boolean -%}
        {%- do problems.append("`tree` holds " ~ value ~ ", which is how YAML reads a bare yes, no, on, off or null. Write it in quotes") -%}
    {%- endif -%}
    {%- do return(value | string) -%}
{% endmacro %}

{% macro _label_tree(value, checked, level) %}
    {%- do return(adapter.dispatch('_label_tree', 'veil')(value, checked, level)) -%}
{% endmacro %}

{% macro default___label_tree(value, checked, level) %}
    {%- set groups = {} -%}
    {%- for leaf in checked.leaves -%}
        {%- do groups.setdefault(leaf[level], []).append(veil._literal(leaf[0])) -%}
    {%- endfor -%}
    {%- set branches = [] -%}
    {%- for label, members in groups.items() -%}
        {%- do branches.append(["cast(" ~ value ~ " as " ~ dbt.type_string() ~ ") in (" ~ members | join(", ") ~ ")", veil._literal(label)]) -%}
    {%- endfor -%}
    {%- do return({'branches': branches}) -%}
{% endmacro %}

{#- DuckDB compares a row with the keys of a CASE one after the other, and joins a list of values by hash: from a few
    hundred keys on, the list is faster to run by far. Both give one label a value. -#}
{% macro duckdb___label_tree(value, checked, level) %}
    {%- if checked.leaves | length <= 200 -%}
        {%- do return(veil.default___label_tree(value, checked, level)) -%}
    {%- endif -%}
    {%- set pairs = [] -%}
    {%- for leaf in checked.leaves -%}
        {%- do pairs.append("(" ~ veil._literal(leaf[0]) ~ ", " ~ veil._literal(leaf[level]) ~ ")") -%}
    {%- endfor -%}
    {%- set found -%}
(
        select max(veil_tree.veil_label)
        from (values {{ pairs | join(", ") }}) as veil_tree (veil_value, veil_label)
        where veil_tree.veil_value = cast({{ value }} as varchar)
    )
    {%- endset -%}
    {%- do return({'otherwise': found | trim, 'partial': true}) -%}
{% endmacro %}
