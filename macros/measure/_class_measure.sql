{#- One measure of one sensitive column as a query of its own, one row per class: what the public macros return. -#}

{% macro _measure_spec(
    macro, measure, relation, quasi_identifiers, sensitive_column, options, unit, nulls, suppressed_marker,
    problems=none, needs_threshold=false
) %}
    {%- set found = problems if problems is not none else [] -%}
    {%- set columns = veil._names(sensitive_column, 'sensitive_column', found) -%}
    {%- if problems is none and columns | length > 1 -%}
        {%- do found.append(veil._must_be('sensitive_column', "one column", sensitive_column)) -%}
    {%- endif -%}
    {%- set specs = [] -%}
    {%- for column in columns -%}
        {%- set own_problems = [] -%}
        {%- set request = veil._request(measure, column, options, own_problems, needs_threshold=needs_threshold) -%}
        {%- set others = columns | reject('equalto', column) | list if request.joint else [] -%}
        {%- set keys = quasi_identifiers -%}
        {%- if others and quasi_identifiers and quasi_identifiers is not mapping -%}
            {%- set keys = ([quasi_identifiers] if quasi_identifiers is string else quasi_identifiers | list) + others -%}
        {%- endif -%}
        {%- set spec = veil._spec(relation, keys, own_problems, [column], unit, nulls, suppressed_marker) -%}
        {%- do veil._check_request(spec, request, own_problems) -%}
        {%- do spec.update({'request': request}) -%}
        {%- do specs.append(spec) -%}
        {%- for problem in own_problems if problem not in found -%}
            {%- do found.append(problem) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if problems is none and found -%}
        {%- do veil._fail(macro, found) -%}
    {%- endif -%}
    {%- do return(specs) -%}
{% endmacro %}

{#- What a request asks of the table it is taken on: the cell's columns, and an order that means something. -#}
{% macro _check_request(spec, request, problems, where='') %}
    {%- if request.measure != 't' -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set type = spec.types.get(request.column | lower, '') -%}
    {%- set is_text = type.startswith('varchar') or type.startswith('character') or type in ('text', 'string') -%}
    {%- if request.kind == 'ordered' and request.order is none and is_text -%}
        {%- do problems.append("`" ~ where ~ "order` is missing: `" ~ request.column ~ "` is text, and its alphabet is no order. "
            ~ "List its values from low to high, or say `numeric`") -%}
    {%- elif request.kind == 'numeric' and (type.startswith('date') or type.startswith('time')) -%}
        {%- do problems.append("`" ~ where ~ "distance: numeric` needs numbers, and `" ~ request.column ~ "` is a " ~ type
            ~ ". Use `ordered`") -%}
    {%- endif -%}
    {%- if request.scope == 'ring' -%}
        {%- for key in ['x', 'y', 'cell'] if request.get(key) is not none
                and request[key] | lower not in spec.quasi_identifiers | map('lower') | list -%}
            {%- do problems.append("`" ~ where ~ key ~ "` must be one of the quasi-identifiers "
                ~ spec.quasi_identifiers | join(", ") ~ ". Got: '" ~ request[key] ~ "'") -%}
        {%- endfor -%}
        {%- for key in ['x', 'y'] if request.get(key) is not none and spec.types.get(request[key] | lower, '').startswith('varchar') -%}
            {%- do problems.append("`" ~ where ~ key ~ "` must hold whole numbers, and `" ~ request[key] ~ "` is text") -%}
        {%- endfor -%}
    {%- elif request.scope == 'relation' and not problems -%}
        {%- set reference_types = veil._check_columns(request.reference, [request.column], problems, "reference column") -%}
        {%- do request.update({'reference_unit': spec.unit is not none and spec.unit | lower in reference_types}) -%}
    {%- endif -%}
{% endmacro %}

{#- Everything up to figures<id>, for a spec with one request. -#}
{% macro _figures_of(spec) -%}
{{ veil._counted(spec) }},
{{ veil._classes(spec) }},
{{ veil._value_counts(spec, 1) }},
{{ veil._reference(spec, spec.request, 1) }},
    {%- if veil._needs_shares(spec.request) %}
{{ veil._shares(spec, 1) }},
    {%- endif %}
{{ veil._figures(spec, spec.request, 1, '') }}
{%- endmacro %}

{% macro _reference(spec, request, n) -%}
    {%- if request.scope == 'relation' -%}
{{ veil._relation_reference(spec, request, n) }}
    {%- else -%}
{{ veil._global_reference(spec, n) }}
    {%- endif -%}
{%- endmacro %}

{#- The names under which a measure's figures leave. -#}
{% macro _figure_names(measure) %}
    {%- set names = {
        'l': {'measured': 'l'},
        't': {'measured': 't', 'reference_scope': 'reference_scope'},
        'beta': {'measured': 'beta', 'over_cap': 'values_over_cap'},
        'delta_disclosure': {'measured': 'delta'},
        'alpha': {'measured': 'alpha'},
        'homogeneity': {'measured': 'top_share'},
        'posterior_shift': {'measured': 'difference', 'ratio': 'ratio'},
        'person_level_gap': {'measured': 'gap', 'effective_rows': 'effective_rows', 'effective_people': 'effective_people'},
    } -%}
    {%- do return(names[measure]) -%}
{% endmacro %}

{% macro _class_measure_sql(spec) -%}
with
{{ veil._figures_of(spec) }}
select
    {%- for name in spec.quasi_identifiers %}
    figures.q_{{ loop.index }} as {{ veil._quote(name) }},
    {%- endfor %}
    figures.people as {{ veil._helper_name('people', spec.quasi_identifiers) }},
    figures.row_count as {{ veil._helper_name('row_count', spec.quasi_identifiers) }},
    {%- for own, name in veil._figure_names(spec.request.measure).items() %}
    figures.{{ own }} as {{ veil._helper_name(name, spec.quasi_identifiers) }}{{ "," if not loop.last }}
    {%- endfor %}
from figures
{%- endmacro %}
