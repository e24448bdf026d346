{#- One query that gives, in one row, everything a policy promises about a relation: classes, people, row_count, k, and for
    the n-th request the worst class's figure `measured_n` and the number of classes that break it, `failing_n`. One pass
    over the data serves all of them, but the joint ones, whose classes are others. -#}

{% macro measure_sql(relation, policy) %}
    {%- set problems = [] -%}
    {%- set requests = veil._policy_requests(policy) -%}
    {%- set sensitive = [] -%}
    {%- for request in requests if not request.joint and request.column not in sensitive -%}
        {%- do sensitive.append(request.column) -%}
    {%- endfor -%}
    {%- set spec = veil._spec(
        relation, policy.quasi_identifiers, problems, sensitive, veil._unit_name(policy), policy.nulls or 'group',
        more=policy.sensitive or []
    ) -%}
    {%- for request in requests if not request.joint -%}
        {%- do veil._check_request(spec, request, problems, request.measure ~ "." ~ request.column ~ ".") -%}
    {%- endfor -%}
    {%- if policy.remedy -%}
        {%- do spec.update({'coarse': veil._coarse(spec, policy)}) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('measure_sql', problems) -%}
    {%- endif -%}
    {{- return(adapter.dispatch('measure_sql', 'veil')(spec, requests, policy)) -}}
{% endmacro %}

{#- The requests of a policy, in the order in which their figures are numbered. -#}
{% macro _policy_requests(policy) %}
    {%- set requests = [] -%}
    {%- for key in veil._measure_keys() -%}
        {%- do requests.extend(policy.get(key) or []) -%}
    {%- endfor -%}
    {%- do return(requests) -%}
{% endmacro %}

{% macro default__measure_sql(spec, requests, policy) -%}
{{ veil._measured_sql(spec, requests, policy.sensitive or []) }}
{%- endmacro %}

{% macro _measured_sql(spec, requests, all_sensitive) -%}
with
{{ veil._counted(spec) }},
{{ veil._classes(spec) }},
{{ veil._totals(spec) }},
{{ veil._class_summary(spec) }}
{%- for column in spec.sensitive %},
    {%- set n = loop.index -%}
    {%- set own = requests | rejectattr('joint') | selectattr('column', 'equalto', column) | list %}
{{ veil._value_counts(spec, n) }},
{{ veil._global_reference(spec, n) }}
    {%- if veil._any_needs_shares(own) %},
{{ veil._shares(spec, n) }}
    {%- endif %}
{%- endfor %}
{%- for request in requests if not request.joint %}
    {%- set id = "_" ~ (requests.index(request) + 1) %},
{{ veil._figures(spec, request, spec.sensitive.index(request.column) + 1, id) }},
summary{{ id }} as (
    {{ veil._worst_sql(request, "figures" ~ id, id) }}
)
{%- endfor %}
select
    class_summary.classes,
    class_summary.k,
    class_summary.unique_people,
    totals.people,
    totals.row_count
    {%- for request in requests %},
    summary_{{ loop.index }}.measured_{{ loop.index }},
    summary_{{ loop.index }}.failing_{{ loop.index }}
    {%- endfor %}
from class_summary
cross join totals
{%- for request in requests %}
cross join {{ "(" ~ veil._joint_sql(spec, request, all_sensitive, "_" ~ loop.index) ~ ") as " if request.joint }}summary_{{ loop.index }}
{%- endfor %}
{%- endmacro %}

{#- The worst class's figure, and how many classes break the request; 0 where it has no threshold. -#}
{% macro _worst_sql(request, source, id) -%}
select
        {{ request.worst }}({{ source }}.measured) as measured{{ id }},
        {%- if request.threshold is none %}
        0 as failing{{ id }}
        {%- else %}
        coalesce(sum(case when {{ veil._fails(request, source) }} then 1 else 0 end), 0) as failing{{ id }}
        {%- endif %}
    from {{ source }}
{%- endmacro %}

{% macro _any_needs_shares(requests) %}
    {%- for request in requests if veil._needs_shares(request) -%}
        {%- do return(true) -%}
    {%- endfor -%}
    {%- do return(false) -%}
{% endmacro %}

{#- With the other sensitive columns among the quasi-identifiers. -#}
{% macro _joint_sql(spec, request, all_sensitive, id) -%}
    {%- set problems = [] -%}
    {%- set others = all_sensitive | reject('equalto', request.column) | list -%}
    {%- set joint = veil._spec(
        spec.relation, spec.quasi_identifiers + others, problems, [request.column], spec.unit, spec.nulls, spec.marker
    ) -%}
    {%- do veil._check_request(joint, request, problems, request.measure ~ "." ~ request.column ~ ".") -%}
    {%- if problems -%}
        {%- do veil._fail('measure_sql', problems) -%}
    {%- endif -%}
    {%- do joint.update({'request': request}) -%}
    with {{ veil._figures_of(joint) }}
    {{ veil._worst_sql(request, "figures", id) }}
{%- endmacro %}
