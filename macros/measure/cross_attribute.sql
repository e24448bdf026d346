{% macro cross_attribute(
    relation, quasi_identifiers, sensitive_columns, l=2, max_share=0.8, unit=none, nulls='group', suppressed_marker=none
) %}
    {%- set problems = [] -%}
    {%- set spec = veil._cross_spec(
        relation, quasi_identifiers, sensitive_columns, l, max_share, 0, unit, nulls, suppressed_marker, problems
    ) -%}
    {%- if problems -%}
        {%- do veil._fail('cross_attribute', problems) -%}
    {%- endif -%}
    {{- return(adapter.dispatch('cross_attribute', 'veil')(spec)) -}}
{% endmacro %}

{% macro default__cross_attribute(spec) -%}
with
{{ veil._crossed(spec) }}
select
    {%- for name in spec.quasi_identifiers %}
    crossed.q_{{ loop.index }} as {{ veil._quote(name) }},
    {%- endfor %}
    {%- for name in ['people', 'row_count', 'diverse_column', 'homogeneous_column', 'effective_values', 'top_share', 'association'] %}
    crossed.{{ name }} as {{ veil._helper_name(name, spec.quasi_identifiers) }}{{ "," if not loop.last }}
    {%- endfor %}
from crossed
{%- endmacro %}

{% macro _cross_spec(
    relation, quasi_identifiers, sensitive_columns, l, max_share, min_association, unit, nulls, suppressed_marker, problems
) %}
    {%- set sensitive = veil._names(sensitive_columns, 'sensitive_columns', problems) -%}
    {%- if sensitive | length == 1 -%}
        {%- do problems.append(veil._must_be('sensitive_columns', "at least two columns", sensitive_columns)) -%}
    {%- endif -%}
    {%- set spec = veil._spec(relation, quasi_identifiers, problems, sensitive, unit, nulls, suppressed_marker) -%}
    {%- do spec.update({
        'l': veil._number(l, 'l', problems, minimum=1),
        'max_share': veil._number(max_share, 'max_share', problems, minimum=0, maximum=1),
        'min_association': veil._number(min_association, 'min_association', problems, minimum=0, maximum=1),
    }) -%}
    {%- do return(spec) -%}
{% endmacro %}

{#- Classes where one sensitive column is diverse and another has one value for nearly everybody. `association` is the
    uncertainty coefficient (Theil 1970): how much of the homogeneous column the diverse one tells, over the whole table. -#}
{% macro _crossed(spec) -%}
    {%- set pairs = [] -%}
    {%- for column in spec.sensitive -%}
        {%- set i = loop.index -%}
        {%- for other in spec.sensitive if other != column -%}
            {%- do pairs.append([i, spec.sensitive.index(other) + 1]) -%}
        {%- endfor -%}
    {%- endfor -%}
{{ veil._counted(spec) }},
{{ veil._classes(spec) }},
{{ veil._totals(spec) }},
    {%- for _ in spec.sensitive %}
{{ veil._value_counts(spec, loop.index) }},
        {%- set source = "value_counts" ~ loop.index %}
{{ veil._per_class(spec, loop.index, source, {
    'effective_values': veil._effective(source, 'people'),
    'top_share': veil._double("max(" ~ source ~ ".people)") ~ " / "
        ~ ("max(" ~ source ~ ".class_people)" if spec.unit is not none else "sum(" ~ source ~ ".people)"),
}) }},
entropy{{ loop.index }} as (
    {{ veil._entropy_sql(spec, [loop.index]) }}
),
    {%- endfor %}
    {%- for i, j in pairs if i < j %}
entropy{{ i }}_{{ j }} as (
    {{ veil._entropy_sql(spec, [i, j]) }}
),
    {%- endfor %}
crossed as (
    {%- for i, j in pairs %}
    select
        {{ veil._key_list(spec, "figures" ~ i) }},
        figures{{ i }}.people,
        figures{{ i }}.row_count,
        {{ veil._literal(spec.sensitive[i - 1]) }} as diverse_column,
        {{ veil._literal(spec.sensitive[j - 1]) }} as homogeneous_column,
        figures{{ i }}.effective_values,
        figures{{ j }}.top_share,
        {%- set joint = "entropy" ~ [i, j] | min ~ "_" ~ [i, j] | max %}
        coalesce(
            (entropy{{ i }}.entropy + entropy{{ j }}.entropy - {{ joint }}.entropy) / nullif(entropy{{ j }}.entropy, 0),
            0
        ) as association
    from figures{{ i }}
    inner join figures{{ j }}
        on {{ veil._same_class(spec, "figures" ~ i, "figures" ~ j) }}
    cross join entropy{{ i }}
    cross join entropy{{ j }}
    cross join {{ joint }}
    where
        figures{{ i }}.effective_values >= {{ spec.l }} - 1e-9
        and figures{{ j }}.top_share > {{ spec.max_share }} + 1e-9
    {{ "union all" if not loop.last }}
    {%- endfor %}
)
{%- endmacro %}

{#- Entropy of one or two sensitive columns over the whole table. -#}
{% macro _entropy_sql(spec, columns) -%}
    {%- set names = [] -%}
    {%- for i in columns -%}
        {%- do names.append("counted.s_" ~ i) -%}
    {%- endfor -%}
select
        coalesce(ln(sum(tally.people)) - sum(tally.people * ln(tally.people)) / sum(tally.people), 0) as entropy
    from (
        select {{ veil._double(veil._people(spec, 'counted')) }} as people
        from counted
        {%- if spec.unit is not none %}
        where counted.unit_key is not null
        {%- endif %}
        group by {{ names | join(", ") }}
    ) as tally
{%- endmacro %}
