{#- The columns of a release's input in table order, each with its role and what goes with it. The model's own YAML may
    say more of a column than its input does, but not that it is something else; a column of which nobody says a role stops
    the build. -#}

{% macro _policy_columns(node, inputs, problems) %}
    {%- set declared = {} -%}
    {%- for input in inputs -%}
        {%- set types = veil._input_column_types(input) -%}
        {%- set built = types.keys() | list -%}
        {%- for name in built -%}
            {%- set entry = veil._declared_policy(veil._column_of(input, name)) -%}
            {%- set earlier = declared.get(name) -%}
            {%- if earlier is none -%}
                {%- do declared.update({name: {'entry': entry, 'node': input.name, 'data_type': types[name]}}) -%}
            {%- elif entry.get('role') != earlier.entry.get('role') -%}
                {%- do earlier.update({'disputed': true}) -%}
                {%- do problems.append("the column `" ~ name ~ "` is " ~ earlier.entry.get('role', 'undeclared') ~ " in `" ~ earlier.node
                    ~ "` and " ~ entry.get('role', 'undeclared') ~ " in `" ~ input.name ~ "`. Say which it is in this model's own YAML")
                    if not veil._declared_policy(veil._column_of(node, name)) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- for column in input.columns.values() if veil._declared_policy(column) and column.name | lower not in built | map('lower') -%}
            {%- do problems.append("`" ~ input.name ~ "` has no column `" ~ column.name ~ "`, for which its YAML declares a role"
                ~ veil._nearest(column.name, built)) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for column in node.columns.values() if veil._declared_policy(column) and column.name | lower not in declared.keys() | map('lower') -%}
        {%- do declared.update({column.name: {'entry': {}, 'node': node.name}}) -%}
    {%- endfor -%}
    {%- set columns = [] -%}
    {%- set without_role = [] -%}
    {%- for name, found in declared.items() -%}
        {%- set own = veil._declared_policy(veil._column_of(node, name)) -%}
        {%- set entry = dict(found.entry, **own) -%}
        {%- if found.entry.get('role') not in (none, entry.role) and not found.disputed -%}
            {%- do problems.append("`columns." ~ name ~ ".role` is " ~ found.entry.role ~ " in `" ~ found.node ~ "` and " ~ entry.role
                ~ " in this model's own YAML. A role is a fact about the data: change it where the column enters") -%}
        {%- endif -%}
        {%- if entry.get('role') is none -%}
            {%- do without_role.append(name) -%}
        {%- else -%}
            {%- set column = dict(veil._read_column(name, entry, problems), data_type=found.get('data_type')) -%}
            {%- if column.role == 'quasi_identifier' -%}
                {%- do veil._check_hierarchy_type(column.hierarchy, column.data_type, 'columns.' ~ name, problems) -%}
            {%- endif -%}
            {%- do columns.append(column) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if without_role -%}
        {%- do problems.append("no role is declared for " ~ without_role | join(", ") ~ " of `" ~ inputs | map(attribute='name') | join("`, `")
            ~ "`. Declare each in its YAML:\n      - name: " ~ without_role[0] ~ "\n        config: {meta: {veil: {role: "
            ~ veil._roles() | join(" | ") ~ "}}}") -%}
    {%- elif not declared -%}
        {%- do problems.append("nothing it refers to declares a role for any column. Declare `config: {meta: {veil: {role: …}}}` "
            ~ "on every column of its input, in the YAML of the staging model, seed or source") -%}
    {%- endif -%}
    {%- do return(columns) -%}
{% endmacro %}

{% macro _roles() %}
    {%- do return(['unit', 'identifier', 'quasi_identifier', 'sensitive', 'free_text', 'other']) -%}
{% endmacro %}

{% macro _read_column(name, entry, problems) %}
    {%- set where = 'columns.' ~ name -%}
    {%- do veil._mapping(entry, where, problems, ['role', 'hierarchy', 'order', 'mask', 'domain', 'bounds']) -%}
    {%- set role = veil._choice(entry.role, where ~ '.role', problems, veil._roles()) -%}
    {%- do return({
        'name': name,
        'declared': entry,
        'role': role,
        'hierarchy': veil._read_hierarchy(entry.get('hierarchy'), role, where, problems),
        'order': entry.get('order'),
        'mask': veil._read_mask(entry.get('mask'), name, role, problems),
        'domain': entry.get('domain'),
        'bounds': veil._read_bounds(entry.get('bounds'), where ~ '.bounds', problems),
    }) -%}
{% endmacro %}

{#- Only a quasi-identifier is generalised. One without a hierarchy can be kept or suppressed: levels 0 and 1. -#}
{% macro _read_hierarchy(hierarchy, role, where, problems) %}
    {%- if role != 'quasi_identifier' -%}
        {%- if hierarchy is not none and role != 'sensitive' -%}
            {%- do problems.append("`" ~ where ~ ".hierarchy` is for quasi-identifiers and sensitive columns. The role is " ~ role) -%}
        {%- endif -%}
        {%- do return(hierarchy) -%}
    {%- endif -%}
    {%- set found = [] -%}
    {%- set checked = veil._hierarchy(hierarchy, found) -%}
    {%- for problem in found -%}
        {%- do problems.append("`" ~ where ~ "`, " ~ checked.subject ~ ": " ~ problem) -%}
    {%- endfor -%}
    {%- do return(checked) -%}
{% endmacro %}

{#- An identifier that nobody gave a mask is dropped, and so is free text. A mask on any other column is a mistake. -#}
{% macro _read_mask(mask, name, role, problems) %}
    {%- set masked = role in ('unit', 'identifier', 'free_text') -%}
    {%- if mask is none -%}
        {%- do return({'kind': 'drop' if masked else none}) -%}
    {%- elif not masked -%}
        {%- do problems.append("`columns." ~ name ~ ".mask` is for units, identifiers and free text. The role is " ~ role) -%}
        {%- do return({'kind': none}) -%}
    {%- endif -%}
    {%- do return(veil._mask_policy(mask, name, problems)) -%}
{% endmacro %}

{% macro _read_bounds(bounds, where, problems) %}
    {%- if bounds is none -%}
        {%- do return(none) -%}
    {%- elif bounds is string or bounds is mapping or bounds is not sequence or bounds | length != 2 -%}
        {%- do problems.append(veil._must_be(where, "[lower, upper]", bounds)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set lower = veil._number(bounds[0], where ~ '[0]', problems) -%}
    {%- set upper = veil._number(bounds[1], where ~ '[1]', problems) -%}
    {%- if lower is not none and upper is not none and lower >= upper -%}
        {%- do problems.append("`" ~ where ~ "` must rise. Got: [" ~ lower ~ ", " ~ upper ~ "]") -%}
    {%- endif -%}
    {%- do return([lower, upper]) -%}
{% endmacro %}

{#- A node's YAML entry for a column; names compare as the engine compares them. -#}
{% macro _column_of(node, name) %}
    {%- for column in node.columns.values() if column.name | lower == name | lower -%}
        {%- do return(column) -%}
    {%- endfor -%}
    {%- do return({}) -%}
{% endmacro %}

{#- The columns of the table as it stands, with their types. Before it is built, and behind a CTE, the YAML is all there is. -#}
{% macro _input_column_types(input) %}
    {%- set relation = load_relation(veil._relation_of(input)) -%}
    {%- set built = adapter.get_columns_in_relation(relation) if relation is not none else [] -%}
    {%- set types = {} -%}
    {%- for column in built or input.columns.values() -%}
        {%- do types.update({column.name: column.data_type}) -%}
    {%- endfor -%}
    {%- do return(types) -%}
{% endmacro %}
