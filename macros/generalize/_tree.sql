{#- A tree written in YAML: groups of groups of values, all values equally deep. Values are compared as text. It is kept
    as one {values, labels} a group, labels from the innermost out: Jinja is slow by the value and fast by the list. -#}

{% macro _check_tree(spec, problems) %}
    {%- set found = problems | length -%}
    {%- set groups = [] -%}
    {%- if spec.get('tree') is not mapping or not spec.tree -%}
        {%- do problems.append(veil._must_be('tree', "a mapping of groups, such as {tree: {Health: [nurse, doctor], Food: [cook]}}", spec.get('tree'))) -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- do veil._tree_groups(spec.tree, [], groups, problems) -%}
    {%- if problems | length > found -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set depth = groups[0]['labels'] | length -%}
    {%- set parents = {} -%}
    {%- for group in groups -%}
        {%- set labels = group['labels'] -%}
        {%- if labels | length != depth -%}
            {%- do problems.append("`tree` must have all values equally deep. '" ~ group['values'][0] ~ "' lies under " ~ labels | length
                ~ " groups, '" ~ groups[0]['values'][0] ~ "' under " ~ depth) -%}
        {%- endif -%}
        {%- for i in range(labels | length - 1) -%}
            {%- set parent = parents.setdefault(i ~ ':' ~ labels[i], labels[i + 1]) -%}
            {%- if parent != labels[i + 1] -%}
                {%- do problems.append("`tree` has the group '" ~ labels[i] ~ "' under both '" ~ parent ~ "' and '" ~ labels[i + 1]
                    ~ "', so the levels do not nest") -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set values = veil._tree_values(groups) -%}
    {%- if set(values) | length != values | length -%}
        {%- set seen = {} -%}
        {%- for value in values -%}
            {%- if value in seen -%}
                {%- do problems.append("`tree` has the value '" ~ value ~ "' twice") -%}
            {%- endif -%}
            {%- do seen.update({value: true}) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do return({'groups': groups, 'top_level': depth + 1}) -%}
{% endmacro %}

{% macro _tree_groups(node, labels, groups, problems) %}
    {%- if node is mapping -%}
        {%- for name, inner in node.items() -%}
            {%- set label = veil._tree_text(name, problems) -%}
            {%- do veil._check_label(label, problems) -%}
            {%- if not inner -%}
                {%- do problems.append("`tree` has the empty group '" ~ label ~ "'") -%}
            {%- else -%}
                {%- do veil._tree_groups(inner, [label] + labels, groups, problems) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {%- set given = veil._list(node) -%}
        {%- for inner in given | select('mapping') -%}
            {%- do veil._tree_groups(inner, labels, groups, problems) -%}
        {%- endfor -%}
        {%- set values = given | select('string') | list -%}
        {%- for value in given | reject('string') | reject('mapping') -%}
            {%- do values.append(veil._tree_text(value, problems)) -%}
        {%- endfor -%}
        {%- if values -%}
            {%- do groups.append({'values': values, 'labels': labels}) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}

{#- YAML reads a bare no, yes, on or off as a truth value: Norway's code would be lost. -#}
{% macro _tree_text(value, problems) %}
    {%- if value is none or value is boolean -%}
        {%- do problems.append("`tree` holds " ~ value ~ ", which is how YAML reads a bare yes, no, on, off or null. Write it in quotes") -%}
    {%- elif value is sequence and value is not string -%}
        {%- do problems.append("`tree` holds a list in a list. Got: " ~ value) -%}
    {%- endif -%}
    {%- do return(value | string) -%}
{% endmacro %}

{% macro _tree_values(groups) %}
    {%- set values = [] -%}
    {%- for group in groups -%}
        {%- do values.extend(group['values']) -%}
    {%- endfor -%}
    {%- do return(values) -%}
{% endmacro %}

{% macro _label_tree(value, checked, level) %}
    {%- do return(adapter.dispatch('_label_tree', 'veil')(value, checked, level)) -%}
{% endmacro %}

{% macro default___label_tree(value, checked, level) %}
    {%- set members = {} -%}
    {%- for group in checked.groups -%}
        {%- do members.setdefault(group['labels'][level - 1], []).extend(group['values'] | map('replace', "'", "''")) -%}
    {%- endfor -%}
    {%- set branches = [] -%}
    {%- for label, texts in members.items() -%}
        {%- do branches.append(["cast(" ~ value ~ " as " ~ dbt.type_string() ~ ") in ('" ~ texts | join("', '") ~ "')", veil._literal(label)]) -%}
    {%- endfor -%}
    {%- do return({'branches': branches}) -%}
{% endmacro %}

{#- DuckDB compares a row with the keys of a CASE one after the other, and joins a list of values by hash: above some
    dozens of keys, the list is faster to run by far. Both give one label a value. -#}
{% macro duckdb___label_tree(value, checked, level) %}
    {%- if veil._tree_values(checked.groups) | length <= 50 -%}
        {%- do return(veil.default___label_tree(value, checked, level)) -%}
    {%- endif -%}
    {%- set pairs = [] -%}
    {%- for group in checked.groups -%}
        {%- set after = "', " ~ veil._literal(group['labels'][level - 1]) ~ ")" -%}
        {%- do pairs.append("('" ~ group['values'] | map('replace', "'", "''") | join(after ~ ", ('") ~ after) -%}
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
