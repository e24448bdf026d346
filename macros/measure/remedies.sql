{#- What each class needs to be published, the cheapest first: nothing, a coarser sensitive column, or to be merged with
    others or left out. `measures` is what a policy would say: {'t': {'diagnosis': 0.2}}; `hierarchies` along what the
    sensitive columns can be coarsened. -#}

{% macro remedies(relation, quasi_identifiers, measures, hierarchies={}, unit=none, nulls='group') %}
    {%- set problems = [] -%}
    {%- set columns = [] -%}
    {%- for bounds in measures.values() if bounds is mapping -%}
        {%- for name in bounds if name not in columns | map(attribute='name') | list -%}
                        {%- do columns.append({'name': name, 'role': 'sensitive', 'order': none, 'hierarchy': hierarchies.get(name)}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do veil._mapping(measures, 'measures', problems, veil._measure_keys()) -%}
    {%- for key, bounds in measures.items() if bounds is not mapping -%}
        {%- do problems.append(veil._must_be('measures.' ~ key, "a mapping from sensitive columns to thresholds", bounds)) -%}
    {%- endfor -%}
    {%- set read = veil._measure_policy(dict(measures, remedy=true, nulls=nulls), columns, problems) if not problems else {} -%}
    {%- set spec = veil._spec(relation, quasi_identifiers, problems, columns | map(attribute='name') | list, unit, nulls) -%}
    {%- set requests = veil._policy_requests(read) -%}
    {%- for request in requests -%}
        {%- do veil._check_request(spec, request, problems, request.measure ~ "." ~ request.column ~ ".") -%}
    {%- endfor -%}
    {%- if problems -%}
        {%- do veil._fail('remedies', problems) -%}
    {%- endif -%}
    {%- do spec.update({'coarsest': veil._coarsest(spec, columns)}) -%}
    {{- return(adapter.dispatch('remedies', 'veil')(spec, requests)) -}}
{% endmacro %}

{% macro default__remedies(spec, requests) -%}
with
{{ veil._remedied(spec, requests) }}
select
    {%- for name in spec.quasi_identifiers %}
    remedied.q_{{ loop.index }} as {{ veil._quote(name) }},
    {%- endfor %}
    remedied.people as {{ veil._helper_name('people', spec.quasi_identifiers) }},
    remedied.row_count as {{ veil._helper_name('row_count', spec.quasi_identifiers) }},
    remedied.failing as {{ veil._helper_name('failing', spec.quasi_identifiers) }},
    case when remedied.step in ('merge', 'suppress') then 'merge_or_suppress' else remedied.step end as {{ veil._helper_name('remedy', spec.quasi_identifiers) }}
from remedied
{%- endmacro %}

{#- Each sensitive column's coarsest level below the top, by number; 0 where it cannot be coarsened. At the top level
    nothing would be left of the column. -#}
{% macro _coarsest(spec, columns) %}
    {%- set coarsest = {} -%}
    {%- for name in spec.sensitive -%}
        {%- set n = loop.index -%}
        {%- for column in columns if column.name == name -%}
            {%- set hierarchy = veil._known_hierarchy(column.hierarchy) -%}
            {%- set top = hierarchy.top_level if hierarchy is not none and hierarchy.kind != 'suppression' else none -%}
            {%- do coarsest.update({n: top - 1 if top is not none and veil._is_text_type(spec.types.get(name | lower, '')) else 0}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(coarsest) -%}
{% endmacro %}

{% macro _known_hierarchy(hierarchy) %}
    {%- if hierarchy is none or (hierarchy is mapping and 'top_level' in hierarchy) -%}
        {%- do return(hierarchy) -%}
    {%- endif -%}
    {%- do return(veil.hierarchy(hierarchy)) -%}
{% endmacro %}

{% macro _is_text_type(type) %}
    {%- do return(type.startswith('varchar') or type.startswith('character') or type in ('text', 'string')) -%}
{% endmacro %}

{#- Every class with what it breaks and its next step. A class that only tells too much at the distances is coarsened as
    long as its column has levels left; then it is merged, one quasi-identifier after another; then left out. -#}
{% macro _remedied(spec, requests) -%}
    {%- set by_distance = [] -%}
    {%- set by_hand = [] -%}
    {%- for request in requests -%}
        {%- set failing = "failing_" ~ loop.index -%}
        {%- set n = spec.sensitive.index(request.column) + 1 -%}
        {%- if spec.coarsest.get(n, 0) > 0 and request.measure in ('t', 'beta', 'delta_disclosure') and request.get('kind') in (none, 'equal', 'basic', 'enhanced') -%}
            {%- do by_distance.append({'failing': failing, 'n': n}) -%}
        {%- else -%}
            {%- do by_hand.append(failing) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set level = {} -%}
    {%- for n in spec.coarsest -%}
        {%- do level.update({n: "judged.level_" ~ n}) -%}
    {%- endfor -%}
    {%- set blocked = [] -%}
    {%- for failing in by_hand -%}
        {%- do blocked.append("judged." ~ failing ~ " = 1") -%}
    {%- endfor -%}
    {%- for one in by_distance -%}
        {%- do blocked.append("(judged." ~ one.failing ~ " = 1 and " ~ level[one.n] ~ " >= " ~ spec.coarsest[one.n] ~ ")") -%}
    {%- endfor -%}
{{ veil._counted(spec) }},
{{ veil._classes(spec) }}
{%- for column in spec.sensitive %},
{{ veil._value_counts(spec, loop.index) }},
{{ veil._global_reference(spec, loop.index) }},
{{ veil._shares(spec, loop.index) }}
{%- endfor %}
{%- for request in requests %},
{{ veil._figures(spec, request, spec.sensitive.index(request.column) + 1, "_" ~ loop.index) }}
{%- endfor %},
levels as (
    select
        {{ veil._key_list(spec, 'class_rows') }}
        {%- for n in spec.coarsest %},
        {{ "max(class_rows.v_" ~ n ~ ")" if n in spec.coarse else 0 }} as level_{{ n }}
        {%- endfor %}
    from class_rows
    group by {{ veil._key_list(spec, 'class_rows') }}
),
judged as (
    select
        classes.*,
        {%- for n in spec.coarsest %}
        levels.level_{{ n }},
        {%- endfor %}
        {%- for request in requests %}
        case when {{ veil._fails(request, "figures_" ~ loop.index) }} then 1 else 0 end as failing_{{ loop.index }}{{ "," if not loop.last }}
        {%- endfor %}
    from classes
    inner join levels
        on {{ veil._same_class(spec, 'classes', 'levels') }}
    {%- for request in requests %}
    left join figures_{{ loop.index }}
        on {{ veil._same_class(spec, 'classes', "figures_" ~ loop.index) }}
    {%- endfor %}
),
remedied as (
    select
        judged.*,
        {% for request in requests %}{{ "+ " if not loop.first }}judged.failing_{{ loop.index }} {% endfor %}as failing,
        case
            when {% for request in requests %}{{ "and " if not loop.first }}judged.failing_{{ loop.index }} = 0 {% endfor %}then 'publish'
            when not ({{ blocked | join(" or ") }}) then 'coarsen_attribute'
            when {{ veil._not_merged(spec, 'judged', spec.positions) }} then 'merge'
            else 'suppress'
        end as step
        {%- for n in spec.coarsest %},
        case
            when not ({{ blocked | join(" or ") }}) and (1 = 0
                {%- for one in by_distance if one.n == n %} or judged.{{ one.failing }} = 1{% endfor %}) then judged.level_{{ n }} + 1
            when {% for request in requests %}{{ "and " if not loop.first }}judged.failing_{{ loop.index }} = 0 {% endfor %}then judged.level_{{ n }}
            when not ({{ blocked | join(" or ") }}) then judged.level_{{ n }}
            else 0 -- merged classes are judged anew, as they were
        end as next_level_{{ n }}
        {%- endfor %}
    from judged
)
{%- endmacro %}

{#- Whether some of these quasi-identifiers still tell something: a text that is not the top label, another type not NULL. -#}
{% macro _not_merged(spec, alias, positions) %}
    {%- set tests = [] -%}
    {%- for position in positions -%}
        {%- set name = spec.quasi_identifiers[spec.positions.index(position)] -%}
        {%- set column = alias ~ "." ~ position -%}
        {%- if veil._is_text_type(spec.types.get(name | lower, '')) -%}
            {%- do tests.append("(" ~ column ~ " is null or " ~ column ~ " <> '*')") -%}
        {%- elif spec.nulls != 'fail' -%}
            {%- do tests.append("(" ~ column ~ " is not null)") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return("(" ~ tests | join(" or ") ~ ")" if tests else "(1 = 0)") -%}
{% endmacro %}
