{#- One SELECT that makes a release of a relation whose columns carry roles: quasi-identifiers at the policy's levels,
    identifiers masked or dropped, people in classes below k left out, the order of the rows lost. -#}

{% macro anonymize(relation) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- do veil._check_materialized('anonymize') -%}
    {%- do return(adapter.dispatch('anonymize', 'veil')(relation, veil.policy(relation))) -%}
{% endmacro %}

{% macro default__anonymize(relation, policy) -%}
{%- set released = veil._released_columns(policy) -%}
{%- set unit = veil._unit_name(policy) -%}
with source_rows as (

    select * from {{ relation }}

),

generalized as (

    {{ veil._generalized_sql(policy) | indent(4) }}

),

{%- if policy.quasi_identifiers %}

classes as (

    {{ veil.classes('generalized', policy.quasi_identifiers, unit=unit, nulls=policy.nulls) | indent(4) }}

),

{%- endif %}

final as (

    select
        {%- if unit is not none %}
        generalized.{{ unit }}, -- counted by the release gate, which drops it before it publishes
        {%- endif %}
        {%- for column in released %}
        generalized.{{ veil._quote(column.name) }}{{ "," if not loop.last }}
        {%- endfor %}
    from generalized
    {%- if policy.quasi_identifiers %}
    inner join classes
        on {% for name in policy.quasi_identifiers -%}
        {%- if not loop.first %}
        and {% endif -%}
        generalized.{{ veil._quote(name) }} is not distinct from classes.{{ veil._quote(name) }}
        {%- endfor %}
    where
        classes.{{ veil._helper_name('people', policy.quasi_identifiers) }} >= {{ policy.k }}
        {%- for condition in veil._refused_conditions(policy) %}
        or {{ condition }} -- counted and refused by the release gate
        {%- endfor %}
    {%- endif %}

)

select
    {%- if unit is not none %}
    final.{{ unit }},
    {%- endif %}
    {%- for column in released %}
    final.{{ veil._quote(column.name) }}{{ "," if not loop.last }}
    {%- endfor %}
from final
{{ veil._order_by_content(released | map(attribute='name') | list) }}
{%- endmacro %}

{#- The rows as they will leave, none left out yet, with the unit beside them. Reads from a CTE called source_rows. -#}
{% macro _generalized_sql(policy) -%}
{%- set unit = veil._unit_name(policy) -%}
select
    {%- if unit is not none %}
    {{ veil._quote(policy.unit, 'source_rows') }} as {{ unit }},
    {%- endif %}
    {%- for column in veil._released_columns(policy) %}
    {{ veil._released_expression(column, policy) | indent(4) }} as {{ veil._quote(column.name) }}{{ "," if not loop.last }}
    {%- endfor %}
from source_rows
{%- endmacro %}

{#- The columns that leave: all but the identifiers, units and free text whose mask is `drop`. -#}
{% macro _released_columns(policy) %}
    {%- do return(policy.columns | rejectattr('mask.kind', 'equalto', 'drop') | list) -%}
{% endmacro %}

{% macro _released_expression(column, policy) %}
    {%- if column.role == 'quasi_identifier' and column.hierarchy is not none -%}
        {%- do return(veil.generalize(column.name, column.hierarchy, policy.levels[column.name],
            on_unmapped='mark' if policy.on_unmapped == 'fail' else 'suppress', relation_alias='source_rows')) -%}
    {%- elif column.mask.kind is not none -%}
        {%- do return(veil.masked(column, alias='source_rows')) -%}
    {%- endif -%}
    {%- do return(veil._quote(column.name, 'source_rows')) -%}
{% endmacro %}

{#- What must reach the gate even in a class below k, so that it is refused with its count and not lost in silence. -#}
{% macro _refused_conditions(policy) %}
    {%- set conditions = [] -%}
    {%- for column in policy.columns if column.role == 'quasi_identifier' -%}
        {%- set name = veil._quote(column.name, 'generalized') -%}
        {%- if policy.on_unmapped == 'fail' and policy.levels[column.name] > 0 -%}
            {%- do conditions.append(name ~ " = " ~ veil._literal(veil._unmapped_label())) -%}
        {%- endif -%}
        {%- if policy.nulls == 'fail' -%}
            {%- do conditions.append(name ~ " is null") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(conditions) -%}
{% endmacro %}

{#- The helper column that carries the unit to the gate, under a name that no column of the input has. -#}
{% macro _unit_name(policy) %}
    {%- if policy.unit is none -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set names = policy.columns | map(attribute='name') | map('lower') | list -%}
    {%- set free = namespace(name='veil__unit') -%}
    {%- for name in names if free.name in names -%}
        {%- set free.name = free.name ~ '_' -%}
    {%- endfor -%}
    {%- do return(free.name) -%}
{% endmacro %}

{#- An order that is a function of what is released, and so tells nothing more: not when a row came, nor beside whom. -#}
{% macro _order_by_content(column_names) %}
    {%- do return(adapter.dispatch('_order_by_content', 'veil')(column_names)) -%}
{% endmacro %}

{% macro default___order_by_content(column_names) -%}
order by {% for name in column_names %}final.{{ veil._quote(name) }}{{ ", " if not loop.last }}{% endfor %}
{%- endmacro %}

{% macro duckdb___order_by_content(column_names) -%}
order by hash({% for name in column_names %}final.{{ veil._quote(name) }}{{ ", " if not loop.last }}{% endfor %})
{%- endmacro %}

{#- A view or an ephemeral model would bypass the gate, and an incremental one would add to what was measured. -#}
{% macro _check_materialized(macro) %}
    {%- if config.get('materialized') != 'release' -%}
        {%- do veil._fail(macro, ["a released model must be `materialized: release`, which publishes it only if its policy holds. Got: '"
            ~ config.get('materialized') ~ "'"], "model `" ~ model.name ~ "`") -%}
    {%- endif -%}
{% endmacro %}
