{#- One SELECT that makes a release of a relation whose columns carry roles: quasi-identifiers at the policy's levels,
    identifiers masked or dropped, people in classes below k left out, the order of the rows lost. -#}

{% macro anonymize(relation) %}
    {%- do veil._depend_on_lookups() -%}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- do veil._check_materialized('anonymize') -%}
    {%- set policy = veil._settled(veil.policy(relation), model) -%}
    {%- do return(veil._sealed(adapter.dispatch('anonymize', 'veil')(relation, policy), 'anonymize')) -%}
{% endmacro %}

{% macro default__anonymize(relation, policy) -%}
{%- set names = veil._released_columns(policy) | map(attribute='name') | list -%}
{%- set unit = veil._unit_name(policy) -%}
{%- set carried = unit if flags.WHICH != 'show' else none -%} {#- a preview has no gate -#}
{{ veil._generalized_ctes(relation, policy) }}

classes as (

    {{ veil.classes('generalized', policy.quasi_identifiers, unit=unit, nulls=policy.nulls) | indent(4) }}

),

final as (

    select
        {%- if carried is not none %}
        generalized.{{ carried }}, -- counted by the release gate, which drops it before it publishes
        {%- endif %}
        {{ veil._column_list(names, 'generalized') | indent(8) }}
    from generalized
    {{ veil._in_large_classes(policy, 'generalized') | indent(4) }}

)

select
    {%- if carried is not none %}
    final.{{ carried }},
    {%- endif %}
    {{ veil._column_list(names, 'final') | indent(4) }}
from final
{{ veil._order_by_content(names, 'final') }}
{%- endmacro %}

{#- Where rows are people, rows that are alike once generalised are counted first and written out again at the end: far
    fewer to join and to sort. -#}
{% macro duckdb__anonymize(relation, policy) -%}
{%- if policy.unit is not none -%}
    {%- do return(veil.default__anonymize(relation, policy)) -%}
{%- endif -%}
{%- set names = veil._released_columns(policy) | map(attribute='name') | list -%}
{%- set alike = veil._helper_name('rows_alike', names) -%}
{{ veil._generalized_ctes(relation, policy) }}

counted as (

    select
        {{ veil._column_list(names, 'generalized') | indent(8) }},
        count(*) as {{ alike }}
    from generalized
    group by all

),

classes as (

    {{ veil.classes('counted', policy.quasi_identifiers, nulls=policy.nulls, weight=alike) | indent(4) }}

),

final as (

    select
        {{ veil._column_list(names, 'counted') | indent(8) }},
        counted.{{ alike }}
    from counted
    {{ veil._in_large_classes(policy, 'counted') | indent(4) }}
    {{ veil._order_by_content(names, 'counted') | indent(4) }}

),

copies as (

    select
        {{ veil._column_list(names, 'final') | indent(8) }},
        unnest(range(final.{{ alike }})) as {{ alike }}
    from final

)

select
    {{ veil._column_list(names, 'copies') | indent(4) }}
from copies
{%- endmacro %}

{% macro _generalized_ctes(relation, policy) -%}
with source_rows as (

    select * from {{ relation }}

),
{%- if policy.recoding == 'local' %}

{{ veil._local_recoding(relation, policy) }},
{%- endif %}

generalized as (

    {{ veil._generalized_sql(policy) | indent(4) }}

),
{%- endmacro %}

{% macro _column_list(names, alias) -%}
{%- for name in names -%}
{{ veil._quote(name, alias) }}{{ ",\n" if not loop.last }}
{%- endfor -%}
{%- endmacro %}

{#- Keep the rows whose class has k people. -#}
{% macro _in_large_classes(policy, alias) -%}
inner join classes
    on {% for name in policy.quasi_identifiers -%}
    {{ "\n    and " if not loop.first }}{{ veil._same(veil._quote(name, alias), veil._quote(name, 'classes')) }}
    {%- endfor %}
where
    classes.{{ veil._helper_name('people', policy.quasi_identifiers) }} >= {{ policy.k }}
    {%- for condition in veil._refused_conditions(policy, alias) %}
    or {{ condition }} -- counted and refused by the release gate
    {%- endfor %}
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
{%- if policy.recoding == 'local' %}
{{ veil._join_recoding(policy) }}
{%- endif %}
{%- endmacro %}

{#- The columns that leave: all but the identifiers, units and free text whose mask is `drop`. -#}
{% macro _released_columns(policy) %}
    {%- do return(policy.columns | rejectattr('mask.kind', 'equalto', 'drop') | list) -%}
{% endmacro %}

{% macro _released_expression(column, policy) %}
    {%- if column.role == 'quasi_identifier' and policy.recoding == 'local' -%}
        {%- do return(veil._recoded_label(column, policy)) -%}
    {%- elif column.role == 'quasi_identifier' -%}
        {%- do return(veil.generalize(column.name, column.hierarchy, policy.levels[column.name],
            on_unmapped='mark' if policy.on_unmapped == 'fail' else 'suppress', relation_alias='source_rows')) -%}
    {%- elif column.mask.kind is not none -%}
        {%- do return(veil.masked(column, alias='source_rows')) -%}
    {%- endif -%}
    {%- do return(veil._quote(column.name, 'source_rows')) -%}
{% endmacro %}

{#- What must reach the gate even in a class below k, so that it is refused with its count and not lost in silence. -#}
{% macro _refused_conditions(policy, alias) %}
    {%- set conditions = [] -%}
    {%- for column in policy.columns if column.role == 'quasi_identifier' and flags.WHICH != 'show' -%}
        {%- set name = veil._quote(column.name, alias) -%}
        {%- if policy.on_unmapped == 'fail' and (policy.recoding == 'local' or policy.levels[column.name] > 0) -%}
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
    {%- do return(veil._helper_name('veil__unit', policy.columns | map(attribute='name') | list)) -%}
{% endmacro %}

{#- An order that is a function of what is released, and so tells nothing more: not when a row came, nor beside whom. -#}
{% macro _order_by_content(column_names, alias) %}
    {%- do return(adapter.dispatch('_order_by_content', 'veil')(column_names, alias)) -%}
{% endmacro %}

{% macro default___order_by_content(column_names, alias) -%}
order by {{ veil._column_list(column_names, alias) | replace("\n", " ") }}
{%- endmacro %}

{% macro duckdb___order_by_content(column_names, alias) -%}
order by hash({{ veil._column_list(column_names, alias) | replace("\n", " ") }})
{%- endmacro %}

{#- A view or an ephemeral model would bypass the gate, and an incremental one would add to what was measured. -#}
{% macro _check_materialized(macro) %}
    {%- set subject = "model `" ~ model.name ~ "`" -%}
    {%- if model.resource_type == 'unit_test' -%}
        {%- do veil._fail(macro, ["dbt shows a unit test no graph, so the roles of the columns cannot be read. "
            ~ "Put data tests on the released table, which is measured before it is published"], subject) -%}
    {%- elif config.get('materialized') != 'release' -%}
        {%- do veil._fail(macro, ["a released model must be `materialized: release`, which publishes it only if its policy holds. Got: '"
            ~ config.get('materialized') ~ "'"], subject) -%}
    {%- endif -%}
{% endmacro %}
