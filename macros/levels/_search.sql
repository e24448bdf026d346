{#- What the level search is asked, and the statement that asks it: the rows counted by their quasi-identifiers, the labels
    of every value that occurs at every level, and a request in JSON. -#}

{% macro _search(macro, node, policy, relation, request) %}
    {%- do veil._require_udf(macro, 'veil_find_levels') -%}
    {%- set found = veil._first_row(veil._search_sql('veil_find_levels', macro, node, policy, relation, request)) -%}
    {%- set answer = fromjson(found.answer) -%}
    {%- if answer.problem is defined -%}
        {%- do veil._fail(macro, [answer.problem], "model `" ~ node.name ~ "`") -%}
    {%- endif -%}
    {%- do return(answer) -%}
{% endmacro %}

{% macro _search_sql(udf, macro, node, policy, relation, request) -%}
{%- set asked = veil._search_request(macro, node, policy, request) -%}
with {{ veil._search_inputs(macro, node, policy, relation) }}
select {{ veil._call_search(udf, asked) }} as answer
{%- endmacro %}

{% macro _call_search(udf, asked) -%}
{{ udf }}(
        {{ veil._literal(tojson(asked, sort_keys=true)) }},
        (select list(frequency) from frequency),
        (select list(value_labels) from value_labels)
    )
{%- endmacro %}

{#- The policy as the search reads it. -#}
{% macro _search_request(macro, node, policy, request) %}
    {%- set criteria = [] -%}
    {%- for one in veil._searched_requests(macro, node, policy) -%}
        {%- do criteria.append({
            'measure': one.measure, 'column': one.column, 'kind': one.get('kind'), 'threshold': one.threshold,
            'c': one.get('c'), 'order': one.get('order'),
        }) -%}
    {%- endfor -%}
    {%- do return(dict(request,
        quasi_identifiers=policy.quasi_identifiers,
        sensitive=veil._searched_columns(macro, node, policy),
        unit=policy.unit is not none,
        unmapped=veil._unmapped_label() if policy.on_unmapped == 'fail' else none,
        policy={'k': policy.k, 'suppress_up_to': policy.suppress_up_to, 'criteria': criteria},
    )) -%}
{% endmacro %}

{#- The measures that the search can enforce: all of the policy's, or it stops. -#}
{% macro _searched_requests(macro, node, policy) %}
    {%- set requests = veil._policy_requests(policy) -%}
    {%- set problems = [] -%}
    {%- for one in requests if one.joint or one.scope not in (none, 'global') -%}
        {%- do problems.append("the search measures each sensitive column alone and against the whole release. `" ~ one.measure ~ "` of `" ~ one.column
            ~ "` has " ~ ("`joint: true`" if one.joint else "`reference: " ~ one.scope ~ "`") ~ ": write `levels` by hand, and the release gate measures it") -%}
    {%- endfor -%}
    {%- if problems -%}
        {%- do veil._fail(macro, problems, "model `" ~ node.name ~ "`") -%}
    {%- endif -%}
    {%- do return(requests) -%}
{% endmacro %}

{% macro _searched_columns(macro, node, policy) %}
    {%- do return(veil._searched_requests(macro, node, policy) | map(attribute='column') | unique | list) -%}
{% endmacro %}

{#- The common table expressions `frequency` and `value_labels`, everything in them as text. -#}
{% macro _search_inputs(macro, node, policy, relation) -%}
{%- set problems = [] -%}
{%- set sensitive = veil._searched_columns(macro, node, policy) -%}
{%- set spec = veil._spec(relation, policy.quasi_identifiers, problems, sensitive, policy.unit) -%}
{%- if problems -%}
    {%- do veil._fail(macro, problems, "model `" ~ node.name ~ "`") -%}
{%- endif -%}
{%- set columns = policy.columns | selectattr('role', 'equalto', 'quasi_identifier') | list -%}
{{ veil._counted(spec) }},
frequency as (
    select
        {{ veil._text_list(spec.quasi_identifiers | length, 'q') }} as q,
        {{ veil._text_list(sensitive | length, 's') }} as s,
        {{ "cast(counted.unit_key as varchar)" if policy.unit is not none else "cast(null as varchar)" }} as unit_key,
        cast(counted.row_count as bigint) as row_count
    from counted
),
{%- for column in columns %}
values_of_{{ loop.index }} as (
    {{ veil._searched_values(column, loop.index) }}
),
{%- endfor %}
value_labels as (
    {%- for column in columns %}
    {%- if not loop.first %}
    union all
    {%- endif %}
    select
        'q' as source,
        {{ loop.index }} as "position",
        [
            {{ veil._labels(column, policy) | indent(12) }}
        ] as labels
    from values_of_{{ loop.index }}
    {%- endfor %}
    {%- set requests = veil._searched_requests(macro, node, policy) %}
    {%- for one in requests if veil._places(one) %}
    union all
    select
        's' as source,
        {{ requests.index(one) + 1 }} as "position",
        [
            cast(sensitive_values.sensitive_value as varchar),
            {{ veil._places(one) | indent(12) }}
        ] as labels
    from (
        select distinct counted.s_{{ sensitive.index(one.column) + 1 }} as sensitive_value
        from counted
    ) as sensitive_values
    {%- endfor %}
)
{%- endmacro %}

{% macro _text_list(length, letter) -%}
cast([
    {%- for _ in range(length) -%}
    cast(counted.{{ letter }}_{{ loop.index }} as varchar){{ ", " if not loop.last }}
    {%- endfor -%}
] as varchar[])
{%- endmacro %}

{#- The values of a column that occur, under its own name; and those that only its hierarchy lists, which count as leaves. -#}
{% macro _searched_values(column, position) -%}
{%- set checked = veil.hierarchy(column.hierarchy) -%}
{%- set name = veil._quote(column.name) -%}
{%- if checked.kind not in ('tree', 'lookup') -%}
select distinct counted.q_{{ position }} as {{ name }}
    from counted
{%- else -%}
select cast(counted.q_{{ position }} as varchar) as {{ name }}
    from counted
    union
    {%- if checked.kind == 'lookup' %}
    select cast(level_rows.{{ veil._quote(checked.columns[0]) }} as varchar)
    from {{ checked.relation }} as level_rows
    {%- else %}
    {{ veil._value_rows(veil._tree_values(checked.groups)) | indent(4) }}
    {%- endif %}
{%- endif -%}
{%- endmacro %}

{#- The labels of a value from level 0 to the top, as text. -#}
{% macro _labels(column, policy) -%}
{%- set position = policy.quasi_identifiers.index(column.name) + 1 -%}
{%- for level in range(veil._top_level(column) + 1) -%}
cast({{ veil._label(column, level, policy, 'values_of_' ~ position) }} as varchar){{ ",\n" if not loop.last }}
{%- endfor -%}
{%- endmacro %}

{% macro _label(column, level, policy, alias) %}
    {%- do return(veil.generalize(column.name, column.hierarchy, level,
        on_unmapped='mark' if policy.on_unmapped == 'fail' else 'suppress', relation_alias=alias)) -%}
{% endmacro %}

{% macro _top_level(column) %}
    {%- do return(veil.hierarchy(column.hierarchy).top_level or 0) -%}
{% endmacro %}

{#- What a distance needs to know of a sensitive value: its number, its rank, or its groups. '' where that is nothing. -#}
{% macro _places(request) -%}
{%- set value = 'sensitive_values.sensitive_value' -%}
{%- if request.measure == 't' and request.kind == 'hierarchical' -%}
    {%- for level in range(1, veil.hierarchy(request.hierarchy).top_level) -%}
cast({{ veil.generalize('sensitive_value', request.hierarchy, level, relation_alias='sensitive_values') }} as varchar){{ ",\n" if not loop.last }}
    {%- endfor -%}
{%- elif request.measure == 't' and (request.kind == 'numeric' or request.order == 'numeric') -%}
cast({{ veil._finite_number(value) }} as varchar)
{%- elif request.measure == 't' and request.kind == 'ordered' and request.order is none -%}
case when {{ value }} is not null then cast(dense_rank() over (order by {{ value }} nulls last) as varchar) end
{%- endif -%}
{%- endmacro %}
