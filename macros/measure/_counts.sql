{#- The common table expressions every measure starts from. One pass over the data gives `counted`; the rest is
    arithmetic on counts.

    counted       rows per (quasi-identifiers, sensitive values, person)
    class_rows    the same, less what is suppressed; with wildcard NULLs, each class with all rows it may stand for
    classes       people and rows per equivalence class
    totals        people and rows of the whole input, and of its suppressed part -#}

{% macro _counted(spec) -%}
counted as (
    select
        {%- for name in spec.quasi_identifiers %}
        {{ veil._quote(name, 'source_rows') }} as q_{{ loop.index }},
        {%- endfor %}
        {%- for name in spec.sensitive %}
        {{ veil._sensitive(spec, name, 'source_rows') }} as s_{{ loop.index }},
        {%- endfor %}
        {%- for n, coarse in spec.coarse.items() %}
        {{ veil._quote(coarse.fine, 'source_rows') }} as f_{{ n }},
        {{ veil._quote(coarse.level, 'source_rows') }} as v_{{ n }},
        {%- endfor %}
        {%- if spec.unit is not none %}
        {{ veil._quote(spec.unit, 'source_rows') }} as unit_key,
        {%- endif %}
        {{ "count(*)" if spec.weight is none else "sum(" ~ veil._quote(spec.weight, 'source_rows') ~ ")" }} as row_count
    from {{ veil._from(spec.relation) }}
    group by
        {{ veil._counted_by(spec) | join(",\n        ") }}
),
{{ veil._class_rows(spec) }}
{%- endmacro %}

{% macro _counted_by(spec) %}
    {%- set expressions = [] -%}
    {%- for name in spec.quasi_identifiers -%}
        {%- do expressions.append(veil._quote(name, 'source_rows')) -%}
    {%- endfor -%}
    {%- for name in spec.sensitive -%}
        {%- do expressions.append(veil._sensitive(spec, name, 'source_rows')) -%}
    {%- endfor -%}
    {%- for coarse in spec.coarse.values() -%}
        {%- do expressions.append(veil._quote(coarse.fine, 'source_rows')) -%}
        {%- do expressions.append(veil._quote(coarse.level, 'source_rows')) -%}
    {%- endfor -%}
    {%- if spec.unit is not none -%}
        {%- do expressions.append(veil._quote(spec.unit, 'source_rows')) -%}
    {%- endif -%}
    {%- do return(expressions) -%}
{% endmacro %}

{% macro _class_rows(spec) %}
    {%- set kept = "counted" if spec.nulls == 'wildcard' else "class_rows" -%}
    {%- if spec.nulls != 'wildcard' -%}
class_rows as (
    select *
    from counted
    {%- if spec.marker is not none %}
    where not {{ veil._is_suppressed(spec, 'counted') }}
    {%- endif %}
)
    {%- else -%}
published as (
    select
        counted.*,
        case when {{ veil._has_null(spec, 'counted') }} then 1 else 0 end as has_null
    from counted
    {%- if spec.marker is not none %}
    where not {{ veil._is_suppressed(spec, 'counted') }}
    {%- endif %}
),
class_keys as (
    select distinct
        {{ veil._key_list(spec, 'published') }},
        published.has_null
    from published
),
-- NULL stands for any value: a class holds its own rows and all rows that agree with it where both are known
class_rows as (
    select {{ veil._wild_columns(spec, 'published') }}
    from published
    union all
    select {{ veil._wild_columns(spec, 'class_keys') }}
    from class_keys
    inner join published
        on (class_keys.has_null = 1 or published.has_null = 1)
        and not {{ veil._same_class(spec, 'class_keys', 'published') }}
        {%- for position in spec.positions %}
        and (
            class_keys.{{ position }} = published.{{ position }}
            or class_keys.{{ position }} is null
            or published.{{ position }} is null
        )
        {%- endfor %}
)
    {%- endif -%}
{% endmacro %}

{% macro _wild_columns(spec, keys_from) %}
        {{ veil._key_list(spec, keys_from) }},
        {%- for _ in spec.sensitive %}
        published.s_{{ loop.index }},
        {%- endfor %}
        {%- if spec.unit is not none %}
        published.unit_key,
        {%- endif %}
        published.row_count
{%- endmacro %}

{% macro _classes(spec) -%}
classes as (
    select
        {{ veil._key_list(spec, 'class_rows') }},
        {%- if spec.unit is not none and not spec.sensitive and spec.nulls != 'wildcard' %}
        count(class_rows.unit_key) as people, -- each person has one row in a class here
        {%- else %}
        {{ veil._people(spec, 'class_rows') }} as people,
        {%- endif %}
        sum(class_rows.row_count) as row_count
    from class_rows
    group by {{ veil._key_list(spec, 'class_rows') }}
)
{%- endmacro %}

{% macro _totals(spec) -%}
totals as (
    select
        {{ veil._people(spec, 'counted') }} as people,
        coalesce(sum(counted.row_count), 0) as row_count,
        {{ veil._people(spec, 'counted', veil._is_suppressed(spec, 'counted')) }} as people_suppressed,
        coalesce(sum(case when {{ veil._is_suppressed(spec, 'counted') }} then counted.row_count else 0 end), 0) as rows_suppressed
    from counted
)
{%- endmacro %}

{% macro _class_summary(spec) -%}
class_summary as (
    select
        count(*) as classes,
        min(classes.people) as k,
        coalesce(sum(case when classes.people = 1 then 1 else 0 end), 0) as unique_people,
        coalesce(sum(case when {{ veil._has_null(spec, 'classes') }} then classes.row_count else 0 end), 0) as rows_with_null
    from classes
)
{%- endmacro %}

{#- People in a group: distinct persons, a row without one counting for nobody; rows where no unit is declared. -#}
{% macro _people(spec, alias, condition=none) %}
    {%- set counted = alias ~ (".row_count" if spec.unit is none else ".unit_key") -%}
    {%- if condition is not none -%}
        {%- set counted = "case when " ~ condition ~ " then " ~ counted ~ " end" -%}
    {%- endif -%}
    {%- do return("coalesce(sum(" ~ counted ~ "), 0)" if spec.unit is none else "count(distinct " ~ counted ~ ")") -%}
{% endmacro %}

{% macro _key_list(spec, alias) %}
    {%- set columns = [] -%}
    {%- for position in spec.positions -%}
        {%- do columns.append(alias ~ "." ~ position) -%}
    {%- endfor -%}
    {%- do return(columns | join(", ")) -%}
{% endmacro %}

{#- A row is suppressed when every quasi-identifier is the marker. -#}
{% macro _is_suppressed(spec, alias) %}
    {%- if spec.marker is none -%}
        {%- do return("(1 = 0)") -%}
    {%- endif -%}
    {%- set marked = [] -%}
    {%- for position in spec.positions -%}
        {%- do marked.append(
            "coalesce(cast(" ~ alias ~ "." ~ position ~ " as " ~ dbt.type_string() ~ ") = "
            ~ veil._literal(spec.marker | string) ~ ", 1 = 0)"
        ) -%}
    {%- endfor -%}
    {%- do return("(" ~ marked | join(" and ") ~ ")") -%}
{% endmacro %}

{% macro _has_null(spec, alias) %}
    {%- set tests = [] -%}
    {%- for position in spec.positions -%}
        {%- do tests.append(alias ~ "." ~ position ~ " is null") -%}
    {%- endfor -%}
    {%- do return("(" ~ tests | join(" or ") ~ ")") -%}
{% endmacro %}

{% macro _same_class(spec, left, right) %}
    {%- set tests = [] -%}
    {%- for position in spec.positions -%}
        {%- do tests.append(veil._same(left ~ "." ~ position, right ~ "." ~ position)) -%}
    {%- endfor -%}
    {%- do return("(" ~ tests | join(" and ") ~ ")") -%}
{% endmacro %}

{#- Equal, NULL being equal to NULL, as GROUP BY has it. -#}
{% macro _same(left, right) %}
    {%- do return(adapter.dispatch('_same', 'veil')(left, right)) -%}
{% endmacro %}

{% macro default___same(left, right) %}
    {%- do return("(" ~ left ~ " is not distinct from " ~ right ~ ")") -%}
{% endmacro %}

{% macro spark___same(left, right) %}
    {%- do return("(" ~ left ~ " <=> " ~ right ~ ")") -%}
{% endmacro %}

{#- A name for a class that shows none of its values: each part with its length before it, so that no two tuples meet. -#}
{% macro _class_hash(spec, alias) %}
    {%- set parts = [] -%}
    {%- for position in spec.positions -%}
        {%- set text = "cast(" ~ alias ~ "." ~ position ~ " as " ~ dbt.type_string() ~ ")" -%}
        {%- set length = "cast(length(" ~ text ~ ") as " ~ dbt.type_string() ~ ")" -%}
        {%- do parts.append("coalesce(" ~ dbt.concat([length, "':'", text]) ~ ", '-')") -%}
    {%- endfor -%}
    {%- do return(dbt.hash(dbt.concat(parts))) -%}
{% endmacro %}
