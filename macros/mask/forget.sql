{#- dbt run-operation veil.forget --args '{tokens: [tok_…], domain: patients, reason: "erasure request 18"}'
    Deletes the rows of the tokens: they mean nothing from then on. -#}
{% macro forget(tokens, domain, reason) %}
    {%- set found = veil._reveal('forget', 'veil_forget', tokens, domain, reason) -%}
    {%- if execute -%}
        {%- do log("veil: " ~ found ~ " of " ~ (1 if tokens is string else tokens | length) ~ " tokens deleted from the vault", info=true) -%}
    {%- endif -%}
{% endmacro %}
