{#- The candidate without what only the gate needed. With an enforced contract it is built again from the candidate, by the
    statement that checks names, types and constraints. -#}

{% macro _without_helpers(candidate, policy) %}
    {%- if config.get('contract').enforced -%}
        {%- set checked = candidate.incorporate(path={'identifier': candidate.identifier ~ '_checked'}) -%}
        {%- do drop_relation_if_exists(load_cached_relation(checked)) -%}
        {%- set names = (veil._released_columns(policy) if policy.dp is none else adapter.get_columns_in_relation(candidate))
            | map(attribute='name') | list -%}
        {%- set select_released -%}
        select
            {%- for name in names %}
            candidate.{{ veil._quote(name) }}{{ "," if not loop.last }}
            {%- endfor %}
        from {{ candidate }} as candidate
        {%- endset -%}
        {%- do run_query(create_table_as(False, checked, select_released)) -%}
        {%- do adapter.drop_relation(candidate) -%}
        {%- do return(checked) -%}
    {%- endif -%}
    {%- do veil._drop_helpers(candidate, policy) -%}
    {%- do return(candidate) -%}
{% endmacro %}

{% macro _drop_helpers(relation, policy) %}
    {%- if policy.dp is none -%}
        {%- set released = veil._released_columns(policy) | map(attribute='name') | map('lower') | list -%}
        {%- for column in adapter.get_columns_in_relation(relation) if column.name | lower not in released -%}
            {%- do run_query("alter table " ~ relation ~ " drop column " ~ veil._quote(column.name)) -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}

{#- Put the candidate in the place of the last good table. On DuckDB all of it is one step of one transaction. -#}
{% macro _swap(existing, candidate, target) %}
    {%- if existing is none -%}
        {%- do adapter.rename_relation(candidate, target) -%}
    {%- else -%}
        {%- set backup = make_backup_relation(target, existing.type) -%}
        {%- do drop_relation_if_exists(load_cached_relation(backup)) -%}
        {%- do veil._drop_indexes(existing) -%}
        {%- do adapter.rename_relation(existing, backup) -%}
        {%- do adapter.rename_relation(candidate, target) -%}
        {%- do adapter.drop_relation(backup) -%}
    {%- endif -%}
{% endmacro %}

{#- DuckDB cannot rename a table that has indexes. -#}
{% macro _drop_indexes(relation) %}
    {%- do return(adapter.dispatch('_drop_indexes', 'veil')(relation)) -%}
{% endmacro %}

{% macro default___drop_indexes(relation) %}{% endmacro %}

{% macro duckdb___drop_indexes(relation) %}
    {%- do drop_indexes_on_relation(relation) -%}
{% endmacro %}
