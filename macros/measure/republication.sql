{% macro republication(
    relation, previous, quasi_identifiers, unit, sensitive_column=none, previous_quasi_identifiers=none, nulls='group',
    suppressed_marker=none
) %}
    {%- set problems = [] -%}
    {%- set spec = veil._republication_spec(
        relation, previous, quasi_identifiers, unit, sensitive_column, previous_quasi_identifiers, nulls, suppressed_marker, problems
    ) -%}
    {%- if problems -%}
        {%- do veil._fail('republication', problems) -%}
    {%- endif -%}
    {{- return(adapter.dispatch('republication', 'veil')(spec)) -}}
{% endmacro %}

{% macro default__republication(spec) -%}
with
{{ veil._survivors(spec) }}
select
    {%- for name in spec.quasi_identifiers %}
    survivors.q_{{ loop.index }} as {{ veil._quote(name) }},
    {%- endfor %}
    survivors.people as {{ veil._helper_name('people', spec.quasi_identifiers) }},
    survivors.row_count as {{ veil._helper_name('row_count', spec.quasi_identifiers) }}
    {%- if spec.sensitive %},
    survivors.shared_values as {{ veil._helper_name('shared_values', spec.quasi_identifiers) }}
    {%- endif %}
from survivors
{%- endmacro %}

{% macro _republication_spec(
    relation, previous, quasi_identifiers, unit, sensitive_column, previous_quasi_identifiers, nulls, suppressed_marker, problems
) %}
    {%- set sensitive = [] if sensitive_column is none else veil._names(sensitive_column, 'sensitive_column', problems) -%}
    {%- if unit is none -%}
        {%- do problems.append("`unit` is missing: two releases are compared person by person") -%}
    {%- endif -%}
    {%- if nulls == 'wildcard' -%}
        {%- do problems.append("`nulls: wildcard` does not go with `republication`") -%}
    {%- endif -%}
    {%- if not veil._is_relation(previous) -%}
        {%- do problems.append(veil._must_be('previous', "the relation of the earlier release", previous)) -%}
    {%- endif -%}
    {%- set spec = veil._spec(relation, quasi_identifiers, problems, sensitive, unit, nulls, suppressed_marker) -%}
    {%- if not problems -%}
        {%- do spec.update({'previous': veil._spec(
            previous, previous_quasi_identifiers if previous_quasi_identifiers is not none else quasi_identifiers, problems,
            sensitive, unit, nulls, suppressed_marker
        )}) -%}
    {%- endif -%}
    {%- do return(spec) -%}
{% endmacro %}

{#- Who is in both releases is known to be in one class of the first and one of the second: what the two leave is their
    intersection, and of the sensitive values those that both classes hold (m-invariance, Xiao and Tao 2007). -#}
{% macro _survivors(spec) -%}
    {%- set before = spec.previous -%}
{{ veil._counted(spec) }},
{{ veil._classes(spec) }},
{{ veil._totals(spec) }},
previous_rows as (
    with
    {{ veil._counted(before) | indent(4) }}
    select
        {%- for position in before.positions %}
        class_rows.{{ position }} as p_{{ loop.index }},
        {%- endfor %}
        {%- if spec.sensitive %}
        class_rows.s_1,
        {%- endif %}
        class_rows.unit_key
    from class_rows
),
pairs as (
    select distinct
        {{ veil._key_list(spec, 'class_rows') }},
        {{ veil._previous_list(before, 'previous_rows') }},
        class_rows.unit_key
    from class_rows
    inner join previous_rows
        on previous_rows.unit_key = class_rows.unit_key
),
{%- if spec.sensitive %}
class_values as (
    select distinct
        {{ veil._key_list(spec, 'class_rows') }},
        class_rows.s_1
    from class_rows
    where class_rows.s_1 is not null
),
previous_values as (
    select distinct
        {{ veil._previous_list(before, 'previous_rows') }},
        previous_rows.s_1
    from previous_rows
    where previous_rows.s_1 is not null
),
pair_classes as (
    select distinct
        {{ veil._key_list(spec, 'pairs') }},
        {{ veil._previous_list(before, 'pairs') }}
    from pairs
),
candidates as (
    select
        {{ veil._key_list(spec, 'pair_classes') }},
        {{ veil._previous_list(before, 'pair_classes') }},
        count(*) as shared_values
    from pair_classes
    inner join class_values
        on {{ veil._same_class(spec, 'pair_classes', 'class_values') }}
    inner join previous_values
        on {{ veil._same_previous(before, 'pair_classes', 'previous_values') }}
        and previous_values.s_1 = class_values.s_1
    group by
        {{ veil._key_list(spec, 'pair_classes') }},
        {{ veil._previous_list(before, 'pair_classes') }}
),
{%- endif %}
surviving as (
    select
        {{ veil._key_list(spec, 'pairs') }},
        {{ veil._previous_list(before, 'pairs') }},
        count(*) as people,
        count(*) as row_count
    from pairs
    group by
        {{ veil._key_list(spec, 'pairs') }},
        {{ veil._previous_list(before, 'pairs') }}
),
survivors as (
    select
        surviving.*
        {%- if spec.sensitive %},
        coalesce(candidates.shared_values, 0) as shared_values
        {%- endif %}
    from surviving
    {%- if spec.sensitive %}
    left join candidates
        on {{ veil._same_class(spec, 'surviving', 'candidates') }}
        and {{ veil._same_previous(before, 'surviving', 'candidates') }}
    {%- endif %}
)
{%- endmacro %}

{% macro _previous_list(before, alias) %}
    {%- set columns = [] -%}
    {%- for _ in before.positions -%}
        {%- do columns.append(alias ~ ".p_" ~ loop.index) -%}
    {%- endfor -%}
    {%- do return(columns | join(", ")) -%}
{% endmacro %}

{% macro _same_previous(before, left, right) %}
    {%- set tests = [] -%}
    {%- for _ in before.positions -%}
        {%- do tests.append(veil._same(left ~ ".p_" ~ loop.index, right ~ ".p_" ~ loop.index)) -%}
    {%- endfor -%}
    {%- do return("(" ~ tests | join(" and ") ~ ")") -%}
{% endmacro %}
