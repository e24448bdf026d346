{#- A request is one measure of one sensitive column with its options, read and checked: the same mapping whether it
    comes from a policy, a generic test or a macro's arguments. This is the only list of measures. -#}

{% macro _measures() %}
    {%- do return({
        'l': {
            'threshold': 'l', 'keeps': 'at least', 'worst': 'min',
            'options': ['l', 'kind', 'c', 'joint'], 'kinds': ['entropy', 'distinct', 'recursive'],
        },
        't': {
            'threshold': 't', 'keeps': 'at most', 'worst': 'max',
            'options': ['t', 'distance', 'order', 'hierarchy', 'reference', 'x', 'y', 'radius', 'cell', 'neighbours', 'joint'],
        },
        'beta': {
            'threshold': 'beta', 'keeps': 'at most', 'worst': 'max',
            'options': ['beta', 'kind', 'joint'], 'kinds': ['basic', 'enhanced'],
        },
        'delta_disclosure': {'threshold': 'delta', 'keeps': 'at most', 'worst': 'max', 'options': ['delta', 'joint']},
        'alpha': {'threshold': 'alpha', 'keeps': 'at most', 'worst': 'max', 'options': ['alpha', 'joint']},
        'homogeneity': {'threshold': 'max_share', 'keeps': 'at most', 'worst': 'max', 'options': ['max_share', 'joint']},
        'posterior_shift': {
            'threshold': 'max_difference', 'keeps': 'at most', 'worst': 'max',
            'options': ['max_difference', 'max_ratio', 'joint'],
        },
        'person_level_gap': {'threshold': 'max_gap', 'keeps': 'at most', 'worst': 'max', 'options': ['max_gap', 'joint']},
    }) -%}
{% endmacro %}

{#- `options` as given, `where` the prefix of their names in messages ('' in a test, 'l.diagnosis.' in a policy). -#}
{% macro _request(measure, column, options, problems, where='', needs_threshold=true) %}
    {%- set rule = veil._measures()[measure] -%}
    {%- do veil._mapping(options, where.rstrip('.') or measure, problems, rule.options) -%}
    {%- set given = {} -%}
    {%- for key, value in options.items() if value is not none -%}
        {%- do given.update({key: value}) -%}
    {%- endfor -%}
    {%- set request = {
        'measure': measure, 'column': column, 'worst': rule.worst, 'keeps': rule.keeps, 'threshold': none,
        'scope': 'global' if measure in ('beta', 'delta_disclosure', 'posterior_shift') else none,
        'enforced': needs_threshold,
    } -%}
    {%- do request.update({'joint': veil._boolean(given.get('joint', false), where ~ 'joint', problems)}) -%}
    {#- Named one by one: in a generic test dbt offers only the macros that it finds in the text. -#}
    {%- if measure == 'l' -%}
        {%- do veil._read_l(request, given, where, problems) -%}
    {%- elif measure == 't' -%}
        {%- do veil._read_t(request, given, where, problems) -%}
    {%- elif measure == 'beta' -%}
        {%- do veil._read_kind(request, given, where, problems) -%}
    {%- elif measure == 'posterior_shift' -%}
        {%- do veil._read_posterior_shift(request, given, where, problems) -%}
    {%- endif -%}
    {%- set name = rule.threshold -%}
    {%- if given.get(name) is not none -%}
        {%- do request.update({'threshold': veil._threshold(measure, request, given[name], where ~ name, problems)}) -%}
    {%- elif needs_threshold and not (measure == 'posterior_shift' and request.max_ratio is not none) -%}
        {%- do problems.append("`" ~ where ~ name ~ "` is missing") -%}
    {%- endif -%}
    {%- do return(request) -%}
{% endmacro %}

{% macro _threshold(measure, request, value, name, problems) %}
    {%- if measure == 'l' and request.kind == 'entropy' -%}
        {%- do return(veil._number(value, name, problems, minimum=1)) -%}
    {%- elif measure == 'l' -%}
        {%- do return(veil._integer(value, name, problems, minimum=1)) -%}
    {%- elif measure in ('beta', 'delta_disclosure', 'person_level_gap') -%}
        {%- do return(veil._number(value, name, problems, minimum=0)) -%}
    {%- endif -%}
    {%- do return(veil._number(value, name, problems, minimum=0, maximum=1)) -%}
{% endmacro %}

{% macro _read_kind(request, given, where, problems) %}
    {%- set kinds = veil._measures()[request.measure].kinds -%}
    {%- do request.update({'kind': veil._choice(given.get('kind', kinds[0]), where ~ 'kind', problems, kinds)}) -%}
{% endmacro %}

{% macro _read_l(request, given, where, problems) %}
    {%- do veil._read_kind(request, given, where, problems) -%}
    {%- if request.kind == 'recursive' -%}
        {%- set c = given.get('c') -%}
        {%- do request.update({
            'c': none if c is none else veil._number(c, where ~ 'c', problems, minimum=0),
            'worst': 'max',
            'rank': veil._integer(given.get('l', 2), where ~ 'l', [], minimum=1) or 1,
        }) -%}
        {%- if request.enforced and c is none -%}
            {%- do problems.append("`" ~ where ~ "c` is missing: recursive l-diversity asks that the most frequent value "
                ~ "is rarer than c times all values from the l-th on") -%}
        {%- endif -%}
    {%- elif given.get('c') is not none -%}
        {%- do problems.append("`" ~ where ~ "c` goes with `kind: recursive` only. Got: kind '" ~ request.kind ~ "'") -%}
    {%- endif -%}
{% endmacro %}

{% macro _read_posterior_shift(request, given, where, problems) %}
    {%- set ratio = given.get('max_ratio') -%}
    {%- do request.update({
        'max_ratio': none if ratio is none else veil._number(ratio, where ~ 'max_ratio', problems, minimum=1),
    }) -%}
{% endmacro %}

{% macro _read_t(request, given, where, problems) %}
    {%- set distance = veil._choice(
        given.get('distance', 'equal'), where ~ 'distance', problems, ['equal', 'ordered', 'numeric', 'hierarchical']
    ) -%}
    {%- do request.update({
        'kind': distance,
        'order': veil._read_order(given.get('order'), distance, where, problems),
        'hierarchy': given.get('hierarchy'),
    }) -%}
    {%- if distance == 'hierarchical' and request.hierarchy is none -%}
        {%- do problems.append("`" ~ where ~ "hierarchy` is missing: the hierarchical distance is measured along one") -%}
    {%- endif -%}
    {%- do veil._read_reference(request, given, where, problems) -%}
{% endmacro %}

{% macro _read_order(order, distance, where, problems) %}
    {%- if order is none or distance != 'ordered' or order == 'numeric' -%}
        {%- do return(order if distance == 'ordered' else none) -%}
    {%- endif -%}
    {%- if order is string or order is mapping or order is not sequence or order | length < 2 or order | unique | list | length < order | length -%}
        {%- do problems.append(veil._must_be(where ~ 'order', "`numeric`, or a list of at least two different values from low to high", order)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return(order | list) -%}
{% endmacro %}

{#- What a class is compared with: the whole table, the cells around it, or another relation. -#}
{% macro _read_reference(request, given, where, problems) %}
    {%- set reference = given.get('reference', 'global') -%}
    {%- set ring_options = ['x', 'y', 'radius', 'cell', 'neighbours'] -%}
    {%- if reference is string and reference in ('global', 'ring') -%}
        {%- do request.update({'scope': reference}) -%}
    {%- else -%}
        {%- if where or not veil._is_relation(reference) -%}
            {%- do problems.append(veil._must_be(where ~ 'reference', "`global`, `ring`" ~ ("" if where else " or a relation"), reference)) -%}
        {%- endif -%}
        {%- do request.update({'scope': 'relation', 'reference': reference}) -%}
    {%- endif -%}
    {%- for key in ring_options if given.get(key) is not none and request.scope != 'ring' -%}
        {%- do problems.append("`" ~ where ~ key ~ "` goes with `reference: ring` only") -%}
    {%- endfor -%}
    {%- if request.scope != 'ring' -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set by_place = given.get('x') is not none or given.get('y') is not none -%}
    {%- set by_list = given.get('cell') is not none or given.get('neighbours') is not none -%}
    {%- if by_place == by_list or (by_place and (given.get('x') is none or given.get('y') is none))
            or (by_list and (given.get('cell') is none or given.get('neighbours') is none)) -%}
        {%- do problems.append("`" ~ where ~ "reference: ring` needs the columns of the cell: `x` and `y` (whole numbers), or `cell` "
            ~ "and `neighbours` (a relation with columns cell, neighbour)") -%}
    {%- endif -%}
    {%- do request.update({
        'x': given.get('x'), 'y': given.get('y'), 'cell': given.get('cell'), 'neighbours': given.get('neighbours'),
        'radius': veil._integer(given.get('radius', 1), where ~ 'radius', problems, minimum=1, maximum=20),
    }) -%}
    {%- if by_list and given.get('radius') is not none -%}
        {%- do problems.append("`" ~ where ~ "radius` goes with `x` and `y`: a neighbour relation says itself who is near") -%}
    {%- endif -%}
{% endmacro %}
