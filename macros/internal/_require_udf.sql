{#- Stop when the model is a view, or the database has no UDF of that name: then with the lines of profiles.yml that
    bring it. -#}

{% macro _require_udf(macro, name) %}
    {%- if execute -%}
        {%- if model is defined and model.resource_type == 'model' and model.config.materialized == 'view' -%}
            {%- do veil._fail(macro, ["a view would call " ~ name ~ " whenever it is read, and only dbt has that function. "
                ~ "Set `materialized: table`"], "model `" ~ model.name ~ "`") -%}
        {%- endif -%}
        {%- do adapter.dispatch('_require_udf', 'veil')(macro, name) -%}
    {%- endif -%}
{% endmacro %}

{% macro default___require_udf(macro, name) %}
    {%- do veil._fail(macro, ["needs the function " ~ name ~ ", which Veil brings to DuckDB alone so far. Got the adapter: "
        ~ target.type]) -%}
{% endmacro %}

{% macro duckdb___require_udf(macro, name) %}
    {%- if not veil._is_registered(name) -%}
        {%- set lines -%}
needs the function {{ name }}, which this database does not have. In profiles.yml, under the output `{{ target.name }}` of the profile `{{ target.profile_name }}`, add:

      plugins:
        - module: dbt_veil.plugin
          config:
            keyring_file: secrets/veil_keyring.json

and install it with `pip install dbt-veil`, or add `module_paths: [dbt_packages/veil/udfs]` beside `plugins`. A first keyring comes from `veil key new secrets/veil_keyring.json`, or without pip from `PYTHONPATH=dbt_packages/veil/udfs python -m dbt_veil.cli key new secrets/veil_keyring.json`
        {%- endset -%}
        {%- do veil._fail(macro, [lines]) -%}
    {%- endif -%}
{% endmacro %}
