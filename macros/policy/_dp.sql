{#- The `dp` mapping of a policy, read and checked: every problem is added to `problems`, and nothing is run. What comes
    back says, for every figure, which mechanisms it takes, on what share of the budget, at what sensitivity. -#}

{% macro _dp(dp, columns, problems, node) %}
    {%- if dp is mapping and 'queries' in dp -%}
        {%- do return(dp) -%}
    {%- endif -%}
    {%- set declared = veil._mapping(dp, 'dp', problems, veil._dp_keys()) -%}
    {%- set names = columns | map(attribute='name') | list -%}
    {%- set private = declared.get('keys') == 'private' -%}
    {%- set plan = {
        'budget': veil._text(declared.budget, 'dp.budget', problems),
        'unit': veil._dp_unit(declared, columns, problems),
        'group_by': veil._dp_group_by(declared, names, veil._dp_unit(declared, columns, []), problems),
        'mechanism': veil._choice(declared.get('mechanism', 'laplace'), 'dp.mechanism', problems, ['laplace', 'gaussian']),
        'types': veil._dp_types(columns),
        'people': veil._dp_optional_integer(declared.get('people'), 'dp.people', problems),
        'pre_threshold': veil._dp_optional_integer(declared.get('pre_threshold'), 'dp.pre_threshold', problems) or 1,
        'max_rows_per_group': veil._dp_optional_integer(declared.get('max_rows_per_group'), 'dp.max_rows_per_group', problems),
    } -%}
    {%- do plan.update({'epsilon': veil._dp_epsilon(declared, problems)}) -%}
    {%- do plan.update({'delta': veil._dp_delta(declared, plan, private, problems)}) -%}
    {%- do plan.update({'max_groups': veil._dp_max_groups(declared, plan, problems)}) -%}
    {%- do plan.update({'key_source': veil._dp_key_source(declared, plan, columns, problems, node)}) -%}
    {%- if 'pre_threshold' in declared and not private -%}
        {%- do problems.append("`dp.pre_threshold` is for `keys: private`; public keys are all released") -%}
    {%- endif -%}
    {%- do plan.update({'measures': veil._dp_measures(declared, plan, columns, problems, node)}) -%}
    {%- do plan.update(veil._dp_selection(declared, plan, private, problems)) -%}
    {%- do veil._dp_divide(plan, problems) -%}
    {%- if declared.get('stable_because') is none -%}
        {%- do veil._check_stable(node, plan.unit, problems, []) -%}
    {%- else -%}
        {%- do veil._text(declared.stable_because, 'dp.stable_because', problems) -%}
    {%- endif -%}
    {%- do return(plan) -%}
{% endmacro %}

{% macro _dp_keys() %}
    {%- do return(['budget', 'epsilon', 'delta', 'unit', 'group_by', 'keys', 'max_groups', 'max_rows_per_group', 'mechanism',
        'measures', 'people', 'pre_threshold', 'selection_share', 'stable_because', 'refresh', 'consumer', 'block']) -%}
{% endmacro %}

{% macro _dp_types(columns) %}
    {%- set types = {} -%}
    {%- for column in columns if column.get('data_type') -%}
        {%- do types.update({column.name: column.data_type}) -%}
    {%- endfor -%}
    {%- do return(types) -%}
{% endmacro %}

{% macro _dp_optional_integer(value, name, problems) %}
    {%- do return(none if value is none else veil._integer(value, name, problems, 1)) -%}
{% endmacro %}

{% macro _dp_epsilon(declared, problems) %}
    {%- if 'epsilon' not in declared -%}
        {%- do problems.append("`dp.epsilon` is missing: the privacy loss of this release, for example `epsilon: 0.5`") -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set epsilon = veil._number(declared.epsilon, 'dp.epsilon', problems) -%}
    {%- if epsilon is none -%}
        {%- do return(none) -%}
    {%- elif epsilon > 5 or epsilon < 1e-9 -%}
        {%- do problems.append(veil._must_be('dp.epsilon', "above 0 and at most 5, where it still says something about privacy", declared.epsilon)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return(epsilon) -%}
{% endmacro %}

{#- Laplace on public keys needs no delta. The Gaussian and private keys do, and it stays below one in the population. -#}
{% macro _dp_delta(declared, plan, private, problems) %}
    {%- set needed = private or plan.mechanism == 'gaussian' -%}
    {%- if declared.get('delta') is none -%}
        {%- if needed -%}
            {%- do problems.append("`dp.delta` is missing: " ~ ("private keys are" if private else "the Gaussian mechanism is")
                ~ " private only up to a small delta, for example `delta: 1e-6`") -%}
        {%- endif -%}
        {%- do return(0) -%}
    {%- endif -%}
    {%- set delta = veil._number(declared.delta, 'dp.delta', problems) -%}
    {%- set most = 1 / plan.people if plan.people else 0.001 -%}
    {%- if delta is not none and (delta < 0 or (delta == 0 and needed) or delta > most) -%}
        {%- do problems.append(veil._must_be('dp.delta', ("above 0" if needed else "0 or more") ~ " and at most "
            ~ ("one in `dp.people`, " ~ most if plan.people else most), declared.delta)) -%}
        {%- do return(0) -%}
    {%- endif -%}
    {%- do return(delta or 0) -%}
{% endmacro %}

{% macro _dp_unit(declared, columns, problems) %}
    {%- set names = columns | map(attribute='name') | list -%}
    {%- set units = columns | selectattr('role', 'equalto', 'unit') | map(attribute='name') | list -%}
    {%- if declared.get('unit') is none and units | length == 1 -%}
        {%- do return(units[0]) -%}
    {%- elif declared.get('unit') is none -%}
        {%- do problems.append("`dp.unit` is missing: the column that tells people apart" ~ (", one of " ~ units | join(", ") if units
            else ". Give it the role `unit` in the input's YAML, or name it here")) -%}
    {%- elif declared.unit not in names -%}
        {%- do problems.append("`dp.unit` names `" ~ declared.unit ~ "`, which is not a column of the input" ~ veil._nearest(declared.unit, names)) -%}
    {%- elif units and declared.unit not in units -%}
        {%- do problems.append("`dp.unit` names `" ~ declared.unit ~ "`, and the input gives the role `unit` to " ~ units | join(", ")
            ~ ": what is bounded must be who is protected") -%}
    {%- endif -%}
    {%- do return(declared.get('unit')) -%}
{% endmacro %}

{% macro _dp_group_by(declared, names, unit, problems) %}
    {%- if not declared.get('group_by') and declared.get('group_by') is not string -%}
        {%- do return([]) -%}
    {%- endif -%}
    {%- set group_by = veil._names(declared.group_by, 'dp.group_by', problems) -%}
    {%- for name in group_by -%}
        {%- if name not in names -%}
            {%- do problems.append("`dp.group_by` names `" ~ name ~ "`, which is not a column of the input" ~ veil._nearest(name, names)) -%}
        {%- elif name == unit -%}
            {%- do problems.append("`dp.group_by` names the unit `" ~ name ~ "`: a group for each person cannot be released") -%}
        {%- elif (name | lower).startswith('veil_') -%}
            {%- do problems.append("`dp.group_by` names `" ~ name ~ "`: names that start with `veil_` are kept for the steps of the query") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(group_by) -%}
{% endmacro %}

{% macro _dp_max_groups(declared, plan, problems) %}
    {%- if not plan.group_by -%}
        {%- if declared.get('max_groups') not in (none, 1) -%}
            {%- do problems.append("`dp.max_groups` is " ~ declared.max_groups ~ ", and without `group_by` there is one group") -%}
        {%- endif -%}
        {%- do return(1) -%}
    {%- elif declared.get('max_groups') is none -%}
        {%- do problems.append("`dp.max_groups` is missing: in how many groups one person counts at most, for example `max_groups: 3`") -%}
        {%- do return(1) -%}
    {%- endif -%}
    {%- do return(veil._integer(declared.max_groups, 'dp.max_groups', problems, 1) or 1) -%}
{% endmacro %}

{#- Where the released groups come from: never from the data, unless a threshold stands before them. -#}
{% macro _dp_key_source(declared, plan, columns, problems, node) %}
    {%- set keys = declared.get('keys') -%}
    {%- if not plan.group_by -%}
        {%- if keys is not none -%}
            {%- do problems.append("`dp.keys` are the values of `dp.group_by`, which is missing") -%}
        {%- endif -%}
        {%- do return({'kind': 'all'}) -%}
    {%- elif keys is none -%}
        {%- do problems.append("`dp.keys` is missing: the groups to release, which must not come from the data. Name a public relation "
            ~ "(`keys: ref('…')`), a list, `domain`, or `private` for groups that pass a threshold") -%}
        {%- do return({'kind': 'none'}) -%}
    {%- elif keys == 'private' -%}
        {%- do return({'kind': 'private'}) -%}
    {%- elif keys == 'domain' -%}
        {%- set domains = {} -%}
        {%- for column in columns if column.name in plan.group_by -%}
            {%- do domains.update({column.name: veil._dp_values(column.domain, 'columns.' ~ column.name ~ '.domain', problems)}) -%}
        {%- endfor -%}
        {%- do return({'kind': 'lists', 'lists': domains}) -%}
    {%- elif keys is string -%}
        {%- do return({'kind': 'relation', 'node': veil._public_node(keys, 'dp.keys', problems, node)}) -%}
    {%- elif keys is mapping -%}
        {%- set lists = {} -%}
        {%- for name in plan.group_by -%}
            {%- do lists.update({name: veil._dp_values(keys.get(name), 'dp.keys.' ~ name, problems)}) -%}
        {%- endfor -%}
        {%- for name in keys if name not in plan.group_by -%}
            {%- do problems.append("`dp.keys` lists values for `" ~ name ~ "`, which is not in `dp.group_by`" ~ veil._nearest(name, plan.group_by)) -%}
        {%- endfor -%}
        {%- do return({'kind': 'lists', 'lists': lists}) -%}
    {%- elif plan.group_by | length > 1 -%}
        {%- do problems.append("`dp.keys` is one list, and `dp.group_by` has " ~ plan.group_by | length ~ " columns. Write a list for each: "
            ~ "`keys: {" ~ plan.group_by[0] ~ ": […], " ~ plan.group_by[1] ~ ": […]}`") -%}
        {%- do return({'kind': 'none'}) -%}
    {%- endif -%}
    {%- do return({'kind': 'lists', 'lists': {plan.group_by[0]: veil._dp_values(keys, 'dp.keys', problems)}}) -%}
{% endmacro %}

{#- A public list of values: at least one, none twice. -#}
{% macro _dp_values(values, name, problems) %}
    {%- if values is string or values is mapping or values is not sequence or not values -%}
        {%- do problems.append(veil._must_be(name, "a list of public values, with at least one", values)) -%}
        {%- do return([]) -%}
    {%- elif values | map('string') | unique(true) | list | length < values | length -%}
        {%- do problems.append("`" ~ name ~ "` lists a value twice") -%}
    {%- endif -%}
    {%- do return(values | list) -%}
{% endmacro %}

{#- Private keys pass a threshold on the noisy number of people. Where that number is a measure anyway, it pays once. -#}
{% macro _dp_selection(declared, plan, private, problems) %}
    {%- set counted = plan.measures | selectattr('kind', 'equalto', 'count_units') | list -%}
    {%- if declared.get('selection_share') is not none and (not private or counted) -%}
        {%- do problems.append("`dp.selection_share` is for `keys: private` without a `count_units` measure"
            ~ (": `" ~ counted[0].name ~ "` selects the groups at no further cost" if private else "")) -%}
    {%- endif -%}
    {%- if not private -%}
        {%- do return({'selector': none}) -%}
    {%- elif counted -%}
        {%- do return({'selector': counted[0].name}) -%}
    {%- endif -%}
    {%- do plan.measures.append({
        'name': 'veil_people', 'kind': 'count_units', 'column': none, 'hidden': true, 'clip': none,
        'share': veil._number(declared.selection_share, 'dp.selection_share', problems, 0, 1) if declared.get('selection_share') is not none else none,
        'parts': [{'name': 'veil_people', 'weight': 1, 'linf': 1}],
    }) -%}
    {%- do return({'selector': 'veil_people'}) -%}
{% endmacro %}

{#- Divide epsilon over the parts. A measure takes its `share`; those without one divide what is left equally; within a
    measure its parts take their weights. `epsilon` of a part serves the choice of grids; the ledger works out the exact one. -#}
{% macro _dp_divide(plan, problems) %}
    {%- set given = namespace(sum=0, without=0) -%}
    {%- for measure in plan.measures -%}
        {%- if measure.share is none -%}
            {%- set given.without = given.without + 1 -%}
        {%- else -%}
            {%- set given.sum = given.sum + measure.share -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if given.sum > 1 + 1e-9 -%}
        {%- do problems.append("the shares of `dp.measures` add up to " ~ given.sum | round(6) ~ ", more than 1") -%}
    {%- elif given.without and given.sum > 1 - 1e-9 -%}
        {%- do problems.append("the shares of `dp.measures` leave nothing for the " ~ given.without ~ " without one") -%}
    {%- elif plan.epsilon is not none -%}
        {%- for measure in plan.measures -%}
            {%- set share = measure.share if measure.share is not none else (1 - given.sum) / given.without -%}
            {%- for part in measure.parts -%}
                {%- do part.update({
                    'mechanism': part.get('mechanism') or plan.mechanism,
                    'share': share * part.weight,
                    'epsilon': plan.epsilon * share * part.weight,
                    'l0': plan.max_groups * part.get('bins', 1),
                }) -%}
            {%- endfor -%}
            {%- if measure.get('grid') is not none and measure.get('bounds') is not none -%}
                {%- do veil._dp_steps(measure) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}

{#- What the ledger has to reserve for the plan: one query for each mechanism, and the threshold of private keys, which takes
    all of delta, or half of it beside Gaussian noise. -#}
{% macro _dp_request(plan) %}
    {%- set queries = [] -%}
    {%- set gaussian = [] -%}
    {%- for measure in plan.measures -%}
        {%- for part in measure.parts -%}
            {%- set query = {'name': part.name, 'mechanism': part.mechanism, 'share': part.share, 'l0': part.l0, 'linf': part.linf} -%}
            {%- if part.mechanism == 'exponential' -%}
                {%- do query.update({'monotone': part.monotone}) -%}
            {%- elif part.mechanism == 'gaussian' -%}
                {%- do gaussian.append(part.name) -%}
            {%- endif -%}
            {%- do queries.append(query) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if plan.selector is not none -%}
        {%- do queries.append({'name': 'veil_threshold', 'mechanism': 'threshold', 'delta': plan.delta / 2 if gaussian else plan.delta}) -%}
    {%- endif -%}
    {%- do return({'epsilon': plan.epsilon, 'delta': plan.delta, 'mechanism': plan.mechanism, 'queries': queries}) -%}
{% endmacro %}
