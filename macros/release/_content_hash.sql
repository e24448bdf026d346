{#- A fingerprint of a table's columns and rows, whatever their order: what was measured can be told from what stands there
    later. It finds mistakes, not forgers. None where an engine has no cheap one; then nothing is compared. -#}

{% macro _content_hash(relation) %}
    {%- do return(adapter.dispatch('_content_hash', 'veil')(relation)) -%}
{% endmacro %}

{% macro default___content_hash(relation) %}
    {%- do return(none) -%}
{% endmacro %}

{% macro duckdb___content_hash(relation) %}
    {%- set names = [] -%}
    {%- set described = [] -%}
    {%- for column in adapter.get_columns_in_relation(relation) -%}
        {%- do names.append(veil._quote(column.name, 'released')) -%}
        {%- do described.append(column.name ~ " " ~ column.dtype) -%}
    {%- endfor -%}
    {%- set rows = run_query("select count(*) from " ~ relation).rows[0][0] | int -%}
    {#- The engine's own hash is fast, and may be another in its next version; then a release must be built again. That costs
        budget where it is noisy, and noisy tables are small. -#}
    {%- set row_hash = "hash(" ~ names | join(", ") ~ ")" if rows > 100000 else "md5_number_lower(cast(row(" ~ names | join(", ") ~ ") as varchar))" -%}
    {%- set total = run_query("select cast(coalesce(sum(cast(" ~ row_hash ~ " as hugeint)), 0) as varchar) from " ~ relation ~ " as released").rows[0][0] -%}
    {%- do return(local_md5(tojson(described) ~ rows ~ ":" ~ total)) -%}
{% endmacro %}

{#- A hook that changes the table after it was measured would publish what nobody measured. -#}
{% macro _check_hooks_changed_nothing(relation, content_hash, post_hooks) %}
    {%- if content_hash is not none and post_hooks and veil._content_hash(relation) != content_hash -%}
        {%- do veil._fail('release', ["a post-hook changed the table after it was measured; the last good table stays as it was. "
            ~ "Do it in the staging model"], "model `" ~ model.name ~ "`") -%}
    {%- endif -%}
{% endmacro %}

{#- A unique index reports the value that stands twice. -#}
{% macro _check_indexes() %}
    {%- if config.get('indexes', []) | selectattr('unique') | list -%}
        {%- do veil._fail('release', ["a unique index prints a released value when it fails: set `unique: false` in `indexes`"],
            "model `" ~ model.name ~ "`") -%}
    {%- endif -%}
{% endmacro %}
