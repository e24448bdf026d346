{#- From counts to figures. Every request ends in a CTE `figures<id>` with one row per class: the quasi-identifiers, people,
    row_count, measured, and what else the measure tells. `n` numbers the sensitive column within the query.

    value_counts<n>   people and rows per class and sensitive value
    reference<n>      people per sensitive value in what the classes are compared with -#}

{% macro _value_counts(spec, n) -%}
value_counts{{ n }} as (
    select
        {{ veil._key_list(spec, 'class_rows') }},
        class_rows.s_{{ n }} as sensitive_value,
        {%- if n in spec.coarse %}
        class_rows.v_{{ n }} as value_level,
        {%- endif %}
        {%- if spec.unit is not none %}
        count(distinct class_rows.unit_key) as people,
        sum(class_rows.row_count) as row_count,
        max(classes.people) as class_people
        {%- else %}
        sum(class_rows.row_count) as people,
        sum(class_rows.row_count) as row_count
        {%- endif %}
    from class_rows
    {%- if spec.unit is not none %}
    inner join classes
        on {{ veil._same_class(spec, 'class_rows', 'classes') }}
    where class_rows.unit_key is not null
    {%- endif %}
    group by
        {{ veil._key_list(spec, 'class_rows') }},
        class_rows.s_{{ n }}
        {%- if n in spec.coarse %},
        class_rows.v_{{ n }}
        {%- endif %}
)
{%- endmacro %}

{#- The distribution of the whole table: what is suppressed is left out of the classes, but it is there to be seen. -#}
{% macro _global_reference(spec, n) -%}
    {%- if n in spec.coarse -%}
{{ veil._coarse_reference(spec, n) }}
    {%- else -%}
reference{{ n }} as (
    select
        counted.s_{{ n }} as sensitive_value,
        {{ veil._people(spec, 'counted') }} as people
    from counted
    {%- if spec.unit is not none %}
    where counted.unit_key is not null
    {%- endif %}
    group by counted.s_{{ n }}
)
    {%- endif -%}
{%- endmacro %}

{#- Where some classes hold coarser labels: the whole table at every level, so that a class is compared at its own. -#}
{% macro _coarse_reference(spec, n) -%}
    {%- set coarse = spec.coarse[n] -%}
    {%- set label = "counted.f_" ~ n -%}
reference{{ n }} as (
    {%- for level in range(coarse.levels + 1) %}
    select
        {{ level }} as value_level,
        {{ label if level == 0 else veil.generalize("f_" ~ n, coarse.hierarchy, level, on_unmapped='suppress', relation_alias='counted') | indent(8) }} as sensitive_value,
        {{ veil._people(spec, 'counted') }} as people
    from counted
    {%- if spec.unit is not none %}
    where counted.unit_key is not null
    {%- endif %}
    group by 2
    {{ "union all" if not loop.last }}
    {%- endfor %}
)
{%- endmacro %}

{% macro _relation_reference(spec, request, n) -%}
reference{{ n }} as (
    select
        {{ veil._sensitive(spec, request.column, 'reference_rows') }} as sensitive_value,
        {%- if request.reference_unit %}
        count(distinct {{ veil._quote(spec.unit, 'reference_rows') }}) as people
        {%- else %}
        count(*) as people
        {%- endif %}
    from {{ veil._from(request.reference, 'reference_rows') }}
    {%- if request.reference_unit %}
    where {{ veil._quote(spec.unit, 'reference_rows') }} is not null
    {%- endif %}
    group by {{ veil._sensitive(spec, request.column, 'reference_rows') }}
)
{%- endmacro %}

{#- Each value's share of its class, beside its share in the reference. -#}
{% macro _shares(spec, n) -%}
reference_shares{{ n }} as (
    select
        reference{{ n }}.sensitive_value,
        reference{{ n }}.people,
        {%- if n in spec.coarse %}
        reference{{ n }}.value_level,
        {%- endif %}
        {{ veil._double("reference" ~ n ~ ".people") }} / sum(reference{{ n }}.people) over (
            {{- "partition by reference" ~ n ~ ".value_level" if n in spec.coarse }}) as share
    from reference{{ n }}
),
shares{{ n }} as (
    select
        {{ veil._key_list(spec, "value_counts" ~ n) }},
        value_counts{{ n }}.sensitive_value,
        value_counts{{ n }}.people,
        value_counts{{ n }}.row_count,
        {%- if spec.unit is not none %}
        value_counts{{ n }}.class_people,
        {%- endif %}
        {{ veil._double("value_counts" ~ n ~ ".people") }} / sum(value_counts{{ n }}.people) over (
            partition by {{ veil._key_list(spec, "value_counts" ~ n) }}
        ) as share,
        coalesce(reference_shares{{ n }}.share, 0) as reference_share
    from value_counts{{ n }}
    left join reference_shares{{ n }}
        on {{ veil._same("value_counts" ~ n ~ ".sensitive_value", "reference_shares" ~ n ~ ".sensitive_value") }}
        {%- if n in spec.coarse %}
        and value_counts{{ n }}.value_level = reference_shares{{ n }}.value_level
        {%- endif %}
)
{%- endmacro %}

{#- One row per class, `columns` being what is measured over the rows of `source`. -#}
{% macro _per_class(spec, id, source, columns) -%}
figures{{ id }} as (
    select
        {{ veil._key_list(spec, source) }},
        {{ "max(" ~ source ~ ".class_people)" if spec.unit is not none else "sum(" ~ source ~ ".people)" }} as people,
        sum({{ source }}.row_count) as row_count,
        {%- for name, expression in columns.items() %}
        {{ expression }} as {{ name }}{{ "," if not loop.last }}
        {%- endfor %}
    from {{ source }}
    group by {{ veil._key_list(spec, source) }}
)
{%- endmacro %}

{#- exp of the entropy (natural log) of the known values: how many equally frequent ones would be as diverse. -#}
{% macro _effective(source, count_column) -%}
case
    when count({{ source }}.sensitive_value) = 0 then 0
    when count({{ source }}.sensitive_value) = 1 then 1
    else exp(
        ln({{ veil._known_sum(source, count_column) }})
        - {{ veil._known_sum(source, count_column, " * ln(" ~ source ~ "." ~ count_column ~ ")") }} / {{ veil._known_sum(source, count_column) }}
    )
end
{%- endmacro %}

{% macro _known_sum(source, column, times='') %}
    {%- do return(
        "sum(case when " ~ source ~ ".sensitive_value is not null then "
        ~ veil._double(source ~ "." ~ column) ~ times ~ " end)"
    ) -%}
{% endmacro %}

{#- The CTEs of one request, from value_counts<n> (and shares<n>) to figures<id>. -#}
{% macro _figures(spec, request, n, id) -%}
    {%- if request.measure == 'l' -%}
{{ veil._figures_l(spec, request, n, id) }}
    {%- elif request.measure == 't' -%}
{{ veil._figures_t(spec, request, n, id) }}
    {%- elif request.measure == 'beta' -%}
{{ veil._figures_beta(spec, request, n, id) }}
    {%- elif request.measure == 'delta_disclosure' -%}
{{ veil._figures_delta_disclosure(spec, request, n, id) }}
    {%- elif request.measure == 'posterior_shift' -%}
{{ veil._figures_posterior_shift(spec, request, n, id) }}
    {%- elif request.measure == 'person_level_gap' -%}
{{ veil._figures_person_level_gap(spec, request, n, id) }}
    {%- else -%}
{{ veil._figures_top_share(spec, request, n, id) }}
    {%- endif -%}
{%- endmacro %}

{% macro _needs_shares(request) %}
    {%- do return(request.measure in ('beta', 'delta_disclosure') or (request.measure == 't' and request.scope != 'ring')) -%}
{% endmacro %}

{% macro _figures_l(spec, request, n, id) -%}
    {%- set source = "value_counts" ~ n -%}
    {%- if request.kind == 'distinct' -%}
{{ veil._per_class(spec, id, source, {'measured': "count(" ~ source ~ ".sensitive_value)"}) }}
    {%- elif request.kind == 'entropy' -%}
{{ veil._per_class(spec, id, source, {'measured': veil._effective(source, 'people')}) }}
    {%- else -%}
ranked{{ id }} as (
    select
        {{ source }}.*,
        row_number() over (
            partition by {{ veil._key_list(spec, source) }}
            order by case when {{ source }}.sensitive_value is null then 1 else 0 end, {{ source }}.people desc
        ) as value_rank
    from {{ source }}
),
{{ veil._per_class(spec, id, "ranked" ~ id, {
    'measured': veil._double("max(case when ranked" ~ id ~ ".sensitive_value is not null then ranked" ~ id ~ ".people end)")
        ~ " / sum(case when ranked" ~ id ~ ".sensitive_value is not null and ranked" ~ id ~ ".value_rank >= " ~ request.rank
        ~ " then ranked" ~ id ~ ".people end)",
}) }}
    {%- endif -%}
{%- endmacro %}

{% macro _figures_top_share(spec, request, n, id) -%}
    {%- set source = "value_counts" ~ n -%}
    {%- set class_people = "max(" ~ source ~ ".class_people)" if spec.unit is not none else "sum(" ~ source ~ ".people)" -%}
{{ veil._per_class(spec, id, source, {'measured': veil._double("max(" ~ source ~ ".people)") ~ " / " ~ class_people}) }}
{%- endmacro %}

{% macro _figures_person_level_gap(spec, request, n, id) -%}
    {%- set source = "value_counts" ~ n -%}
{{ veil._per_class(spec, id, source, {
    'measured': veil._effective(source, 'row_count') ~ " - " ~ veil._effective(source, 'people'),
    'effective_rows': veil._effective(source, 'row_count'),
    'effective_people': veil._effective(source, 'people'),
}) }}
{%- endmacro %}

{#- Gain (p - q) / q of the values more frequent in the class. Enhanced: capped at the largest -ln q, as it is reported; the
    claim itself is checked value by value, `over_cap` being the values whose gain is beyond their own -ln q. -#}
{% macro _figures_beta(spec, request, n, id) -%}
gains{{ id }} as (
    select
        shares{{ n }}.*,
        case
            when shares{{ n }}.share > shares{{ n }}.reference_share then shares{{ n }}.share / shares{{ n }}.reference_share - 1
            else 0
        end as gain,
        -ln(shares{{ n }}.reference_share) as cap,
        largest_cap.cap as largest_cap
    from shares{{ n }}
    cross join (select max(-ln(reference_shares{{ n }}.share)) as cap from reference_shares{{ n }}) as largest_cap
),
    {%- set gain = "max(gains" ~ id ~ ".gain)" -%}
    {%- set cap = "max(gains" ~ id ~ ".largest_cap)" %}
{{ veil._per_class(spec, id, "gains" ~ id, {
    'measured': gain if request.kind == 'basic' else "case when " ~ gain ~ " > " ~ cap ~ " then " ~ cap ~ " else " ~ gain ~ " end",
    'gain': gain,
    'over_cap': "sum(case when gains" ~ id ~ ".gain > gains" ~ id ~ ".cap + 1e-9 then 1 else 0 end)",
}) }}
{%- endmacro %}

{% macro _figures_delta_disclosure(spec, request, n, id) -%}
{{ veil._per_class(spec, id, "shares" ~ n, {
    'measured': "max(abs(ln(shares" ~ n ~ ".share / shares" ~ n ~ ".reference_share)))",
}) }}
{%- endmacro %}

{#- Belief: the share of a class's people who have a value, against the share of all people. A value that the class lacks
    moves too: the most frequent such value is the first gap in the class's list of values by overall rank. -#}
{% macro _figures_posterior_shift(spec, request, n, id) -%}
    {%- set source = "value_counts" ~ n -%}
beliefs{{ id }} as (
    select
        reference{{ n }}.sensitive_value,
        {{ veil._double("reference" ~ n ~ ".people") }} / everyone.people as belief,
        row_number() over (order by reference{{ n }}.people desc) as overall_rank
    from reference{{ n }}
    cross join (
        select {{ veil._people(spec, 'counted') }} as people
        from counted
    ) as everyone
),
shifts{{ id }} as (
    select
        {{ source }}.*,
        {{ veil._double(source ~ ".people") }} / {{ source ~ ".class_people" if spec.unit is not none
            else "sum(" ~ source ~ ".people) over (partition by " ~ veil._key_list(spec, source) ~ ")" }} as posterior,
        beliefs{{ id }}.belief as prior,
        beliefs{{ id }}.overall_rank,
        row_number() over (
            partition by {{ veil._key_list(spec, source) }}
            order by beliefs{{ id }}.overall_rank
        ) as class_rank
    from {{ source }}
    inner join beliefs{{ id }}
        on {{ veil._same(source ~ ".sensitive_value", "beliefs" ~ id ~ ".sensitive_value") }}
),
{{ veil._per_class(spec, id ~ "_present", "shifts" ~ id, {
    'difference': "max(abs(shifts" ~ id ~ ".posterior - shifts" ~ id ~ ".prior))",
    'ratio': "max(case when shifts" ~ id ~ ".posterior >= shifts" ~ id ~ ".prior then shifts" ~ id ~ ".posterior / shifts" ~ id
        ~ ".prior else shifts" ~ id ~ ".prior / shifts" ~ id ~ ".posterior end)",
    'first_gap': "coalesce(min(case when shifts" ~ id ~ ".overall_rank <> shifts" ~ id ~ ".class_rank then shifts" ~ id
        ~ ".class_rank end), count(*) + 1)",
}) }},
figures{{ id }} as (
    select
        {{ veil._key_list(spec, "figures" ~ id ~ "_present") }},
        figures{{ id }}_present.people,
        figures{{ id }}_present.row_count,
        case
            when coalesce(beliefs{{ id }}.belief, 0) > figures{{ id }}_present.difference then beliefs{{ id }}.belief
            else figures{{ id }}_present.difference
        end as measured,
        figures{{ id }}_present.ratio
    from figures{{ id }}_present
    left join beliefs{{ id }}
        on beliefs{{ id }}.overall_rank = figures{{ id }}_present.first_gap
)
{%- endmacro %}

{#- Whether a class breaks the request: one condition for the tests, the gate and the remedies. -#}
{% macro _fails(request, source) %}
    {%- set measured = source ~ ".measured" -%}
    {%- set threshold = veil._literal(request.threshold) if request.get('threshold') is not none else none -%}
    {%- if request.measure == 'l' and request.kind == 'recursive' -%}
        {%- do return("(" ~ measured ~ " is null or " ~ measured ~ " > " ~ request.c ~ " - 1e-9)") -%}
    {%- elif request.measure == 'l' -%}
        {%- do return(measured ~ " < " ~ threshold ~ " - 1e-9") -%}
    {%- elif request.measure == 'beta' and request.kind == 'enhanced' -%}
        {%- do return("(" ~ source ~ ".gain > " ~ threshold ~ " + 1e-9 or " ~ source ~ ".over_cap > 0)") -%}
    {%- elif request.measure == 'posterior_shift' -%}
        {%- set tests = [] -%}
        {%- if threshold is not none -%}
            {%- do tests.append(measured ~ " > " ~ threshold ~ " + 1e-9") -%}
        {%- endif -%}
        {%- if request.max_ratio is not none -%}
            {%- do tests.append(source ~ ".ratio > " ~ request.max_ratio ~ " + 1e-9") -%}
        {%- endif -%}
        {%- do return("(" ~ tests | join(" or ") ~ ")") -%}
    {%- endif -%}
    {%- do return(measured ~ " > " ~ threshold ~ " + 1e-9") -%}
{% endmacro %}
