{#- What Veil must know of the engine it runs on. -#}

{% macro _version() %}
    {%- do return('0.1.0') -%}
{% endmacro %}

{% macro _engine_version() %}
    {%- do return(adapter.dispatch('_engine_version', 'veil')()) -%}
{% endmacro %}

{% macro default___engine_version() %}
    {%- do return(veil._literal(target.type)) -%}
{% endmacro %}

{% macro duckdb___engine_version() %}
    {%- do return("'duckdb ' || version()") -%}
{% endmacro %}

{% macro _utc_now() %}
    {%- do return(veil._literal(modules.datetime.datetime.now(modules.pytz.utc).strftime('%Y-%m-%d %H:%M:%S.%f')) | trim) -%}
{% endmacro %}

{#- Whether the plugin has put a function into this database. -#}
{% macro _is_registered(function_name) %}
    {%- set found = run_query("select 1 from duckdb_functions() where function_name = " ~ veil._literal(function_name) ~ " limit 1") -%}
    {%- do return(found.rows | length > 0) -%}
{% endmacro %}

{#- Open the transaction in which a candidate is built, measured and published, also where the profile turns them off. -#}
{% macro _begin() %}
    {%- do adapter.dispatch('_begin', 'veil')() -%}
{% endmacro %}

{% macro default___begin() %}{% endmacro %}

{% macro duckdb___begin() %}
    {%- do adapter.ensure_transaction() -%}
{% endmacro %}
