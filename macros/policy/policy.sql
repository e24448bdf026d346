{#- The policy of a released model, parsed and checked once. Everything that builds, measures or reports a release asks
    here. Problems of a model are reported together, before a row is read. -#}

{% macro policy(relation=none, node=none) %}
    {%- if not execute -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set node = node if node is not none else model -%}
    {%- set subject = "model `" ~ node.name ~ "`" -%}
    {%- set declared = veil._declared_policy(node) -%}
    {%- if not declared -%}
        {%- do veil._fail('policy', ["it has no policy. Declare one in its YAML, for example\n"
            ~ "      config:\n        meta:\n          veil: {audience: partner, levels: {zip: 2}}"], subject) -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- set inputs = veil._inputs(node, relation) -%}
    {%- set columns = veil._policy_columns(node, inputs, problems) -%}
    {%- set policy = veil._read_policy(declared, columns, problems, node) -%}
    {%- if policy.dp is none and not policy.quasi_identifiers -%}
        {%- do problems.append("no column of its input has the role `quasi_identifier`, so k would count the whole table as one class") -%}
    {%- endif -%}
    {%- if policy.dp is none and policy.unit is none and veil._linking_columns(policy) -%}
        {%- do problems.append("`" ~ veil._linking_columns(policy) | join("`, `") ~ "` leaves under a mask that links the rows of a person, "
            ~ "and no column has the role `unit`, so rows would be counted as people. Give the role `unit` to the column that identifies them") -%}
    {%- endif -%}
    {%- for input in inputs if input.get('config', {}).get('materialized') == 'ephemeral' -%}
        {%- do problems.append("the input `" ~ input.name ~ "` is ephemeral, so the gate cannot count what went in. "
            ~ "Set `materialized: view` or `table` on it") -%}
    {%- endfor -%}
    {%- do veil._check_allowed(policy, inputs, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('policy', problems, subject) -%}
    {%- endif -%}
    {%- set written = [declared, columns | map(attribute='declared') | list, veil._setting('hierarchies'), veil._setting('audiences')] -%}
    {%- do policy.update({'hash': local_md5(tojson(written, sort_keys=true))}) -%}
    {%- do return(policy) -%}
{% endmacro %}

{#- What `config.meta.veil` of a node or a column holds, or an empty mapping. -#}
{% macro _declared_policy(node) %}
    {%- set config = node.get('config') or {} -%}
    {%- do return((config.get('meta') or {}).get('veil') or (node.get('meta') or {}).get('veil') or {}) -%}
{% endmacro %}

{#- The model-level keys: how each is read, and its value where it is absent. This is the only list of them. -#}
{% macro _policy_keys() %}
    {%- do return({
        'audience': {'read': 'choice', 'choices': veil._setting('audiences').keys() | list},
        'k': {'read': 'integer', 'minimum': 2},
        'below_floor_because': {'read': 'text'},
        'linked_because': {'read': 'text'},
        'levels': {'read': 'levels'},
        'recoding': {'read': 'choice', 'choices': ['global', 'local'], 'default': 'global'},
        'suppress_up_to': {'read': 'number', 'minimum': 0, 'maximum': 1, 'default': 0},
        'nulls': {'read': 'choice', 'choices': ['group', 'wildcard', 'fail'], 'default': 'group'},
        'on_unmapped': {'read': 'choice', 'choices': ['fail', 'suppress'], 'default': 'fail'},
        'unit': {'read': 'text'},
        'remedy': {'read': 'boolean', 'default': false},
        'l': {'read': 'measure'},
        't': {'read': 'measure'},
        'beta': {'read': 'measure'},
        'delta_disclosure': {'read': 'measure'},
        'alpha': {'read': 'measure'},
        'purpose': {'read': 'names'},
        'retention': {'read': 'integer', 'minimum': 1},
        'dp': {'read': 'dp'},
    }) -%}
{% endmacro %}

{% macro _read_policy(declared, columns, problems, node) %}
    {%- set keys = veil._policy_keys() -%}
    {%- do veil._mapping(declared, 'meta.veil', problems, keys.keys() | list) -%}
    {%- set policy = veil._measure_policy(declared, columns, problems) -%}
    {%- do policy.update({'columns': columns}) -%}
    {%- for key, rule in keys.items() if rule.read != 'measure' -%}
        {%- set value = declared.get(key) -%}
        {%- do policy.update({key: rule.get('default') if value is none
            else veil._read_policy_value(key, value, rule, problems)}) -%}
    {%- endfor -%}
    {%- do policy.update(veil._policy_roles(columns, policy.unit, problems)) -%}
    {%- if policy.dp is not none -%}
        {%- do policy.update({'dp': veil._dp(policy.dp, columns, problems, node)}) -%}
    {%- else -%}
        {%- do veil._check_floor(policy, problems) -%}
        {%- do veil._check_levels(policy, problems) -%}
    {%- endif -%}
    {%- do return(policy) -%}
{% endmacro %}

{% macro _read_policy_value(key, value, rule, problems) %}
    {%- if rule.read == 'integer' -%}
        {%- do return(veil._integer(value, key, problems, rule.get('minimum'), rule.get('maximum'))) -%}
    {%- elif rule.read == 'number' -%}
        {%- do return(veil._number(value, key, problems, rule.get('minimum'), rule.get('maximum'))) -%}
    {%- elif rule.read == 'boolean' -%}
        {%- do return(veil._boolean(value, key, problems)) -%}
    {%- elif rule.read == 'choice' -%}
        {%- do return(veil._choice(value, key, problems, rule.choices)) -%}
    {%- elif rule.read == 'names' -%}
        {%- do return(veil._names(value, key, problems)) -%}
    {%- elif rule.read == 'text' -%}
        {%- do return(veil._text(value, key, problems)) -%}
    {%- elif value == 'auto' or rule.read == 'dp' -%}
        {%- do return(value) -%}
    {%- endif -%}
    {%- set levels = {} -%}
    {%- for column_name, level in veil._mapping(value, key, problems).items() -%}
        {%- do levels.update({column_name: veil._integer(level, key ~ '.' ~ column_name, problems, 0)}) -%}
    {%- endfor -%}
    {%- do return(levels) -%}
{% endmacro %}

{#- The columns by what they are to a release. -#}
{% macro _policy_roles(columns, unit, problems) %}
    {%- set names = columns | map(attribute='name') | list -%}
    {%- set units = columns | selectattr('role', 'equalto', 'unit') | map(attribute='name') | list -%}
    {%- if unit is not none and unit not in names -%}
        {%- do problems.append("`unit` names `" ~ unit ~ "`, which is not a column of the input" ~ veil._nearest(unit, names)) -%}
    {%- elif unit is not none and units and unit not in units -%}
        {%- do problems.append("`unit` is `" ~ unit ~ "`, and the input gives that role to `" ~ units | join("`, `")
            ~ "`: a release counts the people its input declares. Change the role there") -%}
    {%- elif unit is none and units | length > 1 -%}
        {%- do problems.append("the role `unit` is given to " ~ units | join(", ")
            ~ ": a release protects one unit. Name it with `unit: " ~ units[0] ~ "`") -%}
    {%- endif -%}
    {%- do return({
        'unit': unit if unit is not none else units | first if units else none,
        'quasi_identifiers': columns | selectattr('role', 'equalto', 'quasi_identifier') | map(attribute='name') | list,
        'sensitive': columns | selectattr('role', 'equalto', 'sensitive') | map(attribute='name') | list,
    }) -%}
{% endmacro %}

{#- k is at least what the audience asks for, unless the reason for less is written down. -#}
{% macro _check_floor(policy, problems) %}
    {%- set floors = veil._setting('audiences') -%}
    {%- set floor = floors.get(policy.audience) -%}
    {%- if policy.k is none and floor is none -%}
        {%- set texts = [] -%}
        {%- for audience, least in floors.items() -%}
            {%- do texts.append(audience ~ " " ~ least) -%}
        {%- endfor -%}
        {%- do problems.append("`k` or `audience` is missing. The audience sets the floor for k: " ~ texts | join(", ")) -%}
    {%- elif policy.k is none -%}
        {%- do policy.update({'k': floor}) -%}
    {%- elif floor is not none and policy.k < floor and policy.below_floor_because is none -%}
        {%- do problems.append("`k` is " ~ policy.k ~ ", below the floor of " ~ floor ~ " for the audience `" ~ policy.audience
            ~ "`. Raise it, or write down why: `below_floor_because: \"…\"`") -%}
    {%- endif -%}
{% endmacro %}

{#- Every quasi-identifier has a level that its hierarchy reaches. -#}
{% macro _check_levels(policy, problems) %}
    {%- set levels = policy.levels or {} -%}
    {%- if policy.recoding == 'local' and levels and levels != 'auto' -%}
        {%- do problems.append("`recoding: local` chooses levels for every group of people. Leave `levels` out, or say `levels: auto`") -%}
    {%- elif policy.recoding == 'local' -%}
        {%- do policy.update({'levels': 'auto'}) -%}
    {%- endif -%}
    {%- if levels == 'auto' or policy.recoding == 'local' -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set missing = policy.quasi_identifiers | reject('in', levels.keys() | list) | list -%}
    {%- if missing -%}
        {%- do problems.append("`levels` has no level for " ~ missing | join(", ")
            ~ ". Level 0 keeps the value; `levels: auto` lets Veil search") -%}
    {%- endif -%}
    {%- for column_name in levels if column_name not in policy.quasi_identifiers -%}
        {%- do problems.append("`levels` names `" ~ column_name ~ "`, which is not a quasi-identifier of the input"
            ~ veil._nearest(column_name, policy.quasi_identifiers)) -%}
    {%- endfor -%}
    {%- for column in policy.columns if column.role == 'quasi_identifier' and levels.get(column.name) is integer -%}
        {%- set top = column.hierarchy.top_level -%}
        {%- if top is not none and levels[column.name] > top -%}
            {%- do problems.append("`levels." ~ column.name ~ "` is " ~ levels[column.name] ~ "; " ~ (
                "without a hierarchy the column has level 0, the value, and 1, suppressed" if column.hierarchy.kind == 'suppression'
                else "the top level of " ~ column.hierarchy.subject ~ " is " ~ top)) -%}
        {%- endif -%}
    {%- endfor -%}
{% endmacro %}

{#- A release may be made only for a purpose, and kept only for as many days, as every input allows. -#}
{% macro _check_allowed(policy, inputs, problems) %}
    {%- for input in inputs -%}
        {%- set allowed = veil._declared_policy(input) -%}
        {%- set purposes = [allowed.purpose] if allowed.get('purpose') is string else allowed.get('purpose') or [] -%}
        {%- set refused = (policy.purpose or []) | reject('in', purposes) | list -%}
        {%- if purposes and (refused or not policy.purpose) -%}
            {%- do problems.append("`purpose` must be among those that `" ~ input.name ~ "` allows: " ~ purposes | join(", ")
                ~ ". Got: " ~ (refused | join(", ") or "none")) -%}
        {%- endif -%}
        {%- set longest = allowed.get('retention') -%}
        {%- if longest is integer and (policy.retention is none or policy.retention > longest) -%}
            {%- do problems.append("`retention` must be at most the " ~ longest ~ " days that `" ~ input.name ~ "` allows. Got: "
                ~ (policy.retention if policy.retention is not none else "none")) -%}
        {%- endif -%}
    {%- endfor -%}
{% endmacro %}
