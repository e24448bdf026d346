{#- Mend a candidate class by class until it keeps the measures of its policy, or stop. Every pass is measured again: a
    class left out or merged changes what the others are compared with. -#}

{% macro _remedy(candidate, policy) %}
    {%- if not policy.remedy or policy.dp is not none -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set requests = veil._policy_requests(policy) -%}
    {%- set spec = veil._remedy_spec(candidate, policy, requests) -%}
    {%- do veil._rebuild(candidate, veil._with_levels_sql(candidate, spec)) -%}
    {%- set done = {'coarsen_attribute': 0, 'merge': 0, 'suppress': 0} -%}
    {%- set most = veil._setting('remedy_passes') | int -%}
    {%- for pass in range(most + 1) -%}
        {%- set steps = veil._first_row(veil._steps_sql(spec, requests)) -%}
        {%- if not (steps.coarsen_attribute or steps.merge or steps.suppress) -%}
            {%- do log("veil: remedies of " ~ candidate ~ ": " ~ pass ~ " passes; classes coarsened " ~ done.coarsen_attribute
                ~ ", merged " ~ done.merge ~ ", left out " ~ done.suppress, info=true) -%}
            {%- do return(done) -%}
        {%- elif pass == most -%}
            {%- do drop_relation_if_exists(candidate) -%}
            {%- do veil._fail('release', ["the remedies did not settle: after " ~ most ~ " passes " ~ steps.coarsen_attribute
                ~ " classes would be coarsened, " ~ steps.merge ~ " merged and " ~ steps.suppress ~ " left out; the pass that did not settle is `"
                ~ ("coarsen_attribute" if steps.coarsen_attribute else "merge" if steps.merge else "suppress")
                ~ "`. Raise `levels`, loosen the measures, or raise the variable veil__remedy_passes"], "model `" ~ model.name ~ "`") -%}
        {%- endif -%}
        {%- for step in done -%}
            {%- do done.update({step: done[step] + steps[step]}) -%}
        {%- endfor -%}
        {%- do veil._rebuild(candidate, veil._mended_sql(candidate, spec, requests)) -%}
    {%- endfor -%}
{% endmacro %}

{% macro _remedy_spec(candidate, policy, requests) %}
    {%- set problems = [] -%}
    {%- set columns = [] -%}
    {%- for request in requests if request.column not in columns -%}
        {%- do columns.append(request.column) -%}
    {%- endfor -%}
    {%- set spec = veil._spec(candidate, policy.quasi_identifiers, problems, columns, veil._unit_name(policy), policy.nulls) -%}
    {%- if problems -%}
        {%- do veil._fail('release', problems) -%}
    {%- endif -%}
    {%- do spec.update({
        'coarse': veil._coarse(spec, policy),
        'coarsest': veil._coarsest(spec, policy.columns),
        'columns': adapter.get_columns_in_relation(candidate) | map(attribute='name') | list,
    }) -%}
    {%- do return(spec) -%}
{% endmacro %}

{#- By the number of a sensitive column: the helper columns with its value as it was and its level, and its hierarchy. -#}
{% macro _coarse(spec, policy) %}
    {%- set names = policy.columns | map(attribute='name') | list -%}
    {%- set coarse = {} -%}
    {%- for n, levels in veil._coarsest(spec, policy.columns).items() if levels > 0 -%}
        {%- set column = policy.columns | selectattr('name', 'equalto', spec.sensitive[n - 1]) | first -%}
        {%- set m = names.index(column.name) + 1 -%}
        {%- do coarse.update({n: {
            'fine': veil._helper_name('veil__fine_' ~ m, names), 'level': veil._helper_name('veil__level_' ~ m, names),
            'hierarchy': column.hierarchy, 'levels': levels,
        }}) -%}
    {%- endfor -%}
    {%- do return(coarse) -%}
{% endmacro %}

{#- Put the result of a query in the place of the candidate it reads. -#}
{% macro _rebuild(candidate, query) %}
    {%- set mended = candidate.incorporate(path={'identifier': candidate.identifier ~ '_mended'}) -%}
    {%- do drop_relation_if_exists(load_cached_relation(mended)) -%}
    {%- do run_query("create table " ~ mended ~ " as (\n" ~ query ~ "\n)") -%}
    {%- do adapter.drop_relation(candidate) -%}
    {%- do adapter.rename_relation(mended, candidate) -%}
{% endmacro %}

{% macro _with_levels_sql(candidate, spec) -%}
select
    candidate_rows.*
    {%- for n, coarse in spec.coarse.items() %},
    {{ veil._quote(spec.sensitive[n - 1], 'candidate_rows') }} as {{ veil._quote(coarse.fine) }},
    0 as {{ veil._quote(coarse.level) }}
    {%- endfor %}
from {{ candidate }} as candidate_rows
{%- endmacro %}

{% macro _steps_sql(spec, requests) -%}
with
{{ veil._remedied(spec, requests) }}
select
    {%- for step in ['coarsen_attribute', 'merge', 'suppress'] %}
    coalesce(sum(case when remedied.step = '{{ step }}' then 1 else 0 end), 0) as {{ step }}{{ "," if not loop.last }}
    {%- endfor %}
from remedied
{%- endmacro %}

{#- The candidate after one pass. Merging writes the top label, NULL where the column is no text, into the first
    quasi-identifier that still tells something; classes that fall together share the coarsest of their levels. -#}
{% macro _mended_sql(candidate, spec, requests) -%}
with
{{ veil._remedied(spec, requests) }},
moved as (
    select
        {%- for name in spec.columns %}
        {%- set key = veil._position_of(name, spec.quasi_identifiers) %}
        {%- set is_text = veil._is_text_type(spec.types.get(name | lower, '')) %}
        {%- if key and (is_text or spec.nulls != 'fail') %}
        case
            when remedied.step = 'merge' and not {{ veil._not_merged(spec, 'remedied', spec.positions[:key - 1]) }} then {{ "'*'" if is_text else 'null' }}
            else {{ veil._quote(name, 'candidate_rows') }}
        end as {{ veil._quote(name) }}
        {%- else %}
        {{ veil._quote(name, 'candidate_rows') }} as {{ veil._quote(name) }}
        {%- endif %}{{ "," if not loop.last }}
        {%- endfor %}
        {%- for n, coarse in spec.coarse.items() %},
        {{ veil._quote(coarse.fine, 'candidate_rows') }} as {{ veil._quote(coarse.fine) }},
        remedied.next_level_{{ n }} as {{ veil._quote(coarse.level) }}
        {%- endfor %}
    from {{ candidate }} as candidate_rows
    inner join remedied
        on {% for name in spec.quasi_identifiers -%}
        {{ "\n        and " if not loop.first }}{{ veil._same(veil._quote(name, 'candidate_rows'), "remedied.q_" ~ loop.index) }}
        {%- endfor %}
    where remedied.step <> 'suppress'
),
levelled as (
    select
        {{ veil._column_list(spec.columns, 'moved') | indent(8) }}
        {%- for coarse in spec.coarse.values() %},
        {{ veil._quote(coarse.fine, 'moved') }},
        max({{ veil._quote(coarse.level, 'moved') }}) over (
            partition by {{ veil._column_list(spec.quasi_identifiers, 'moved') | replace("\n", " ") }}
        ) as {{ veil._quote(coarse.level) }}
        {%- endfor %}
    from moved
)
select
    {%- for name in spec.columns %}
    {%- set n = veil._position_of(name, spec.sensitive) %}
    {%- if n in spec.coarse %}
    {%- set coarse = spec.coarse[n] %}
    case {{ veil._quote(coarse.level, 'levelled') }}
        {%- for level in range(1, coarse.levels + 1) %}
        when {{ level }} then {{ veil.generalize(coarse.fine, coarse.hierarchy, level, on_unmapped='suppress', relation_alias='levelled') | indent(8) }}
        {%- endfor %}
        else {{ veil._quote(coarse.fine, 'levelled') }}
    end as {{ veil._quote(name) }}
    {%- else %}
    {{ veil._quote(name, 'levelled') }}
    {%- endif %}{{ "," if not loop.last }}
    {%- endfor %}
    {%- for coarse in spec.coarse.values() %},
    {{ veil._quote(coarse.fine, 'levelled') }},
    {{ veil._quote(coarse.level, 'levelled') }}
    {%- endfor %}
from levelled
{{ veil._order_by_content(spec.columns | reject('equalto', spec.unit) | list, 'levelled') }}
{%- endmacro %}

{% macro _position_of(name, names) %}
    {%- set folded = names | map('lower') | list -%}
    {%- do return(folded.index(name | lower) + 1 if name | lower in folded else 0) -%}
{% endmacro %}
