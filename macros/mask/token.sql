{#- A random value for each distinct one, whose mapping is in the vault: without the vault, it means nothing. -#}

{% macro token(column, domain=none, alias=none) %}
    {%- set problems = [] -%}
    {%- set options = veil._mask_options('token', {'domain': domain}, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('token', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('token', 'veil')(column, options, alias)) -%}
{% endmacro %}

{% macro default__token(column, options, alias) %}
    {%- do veil._require_udf('token', 'veil_token') -%}
    {%- do return(veil._once_a_value("veil_token(cast(" ~ veil._quote(column, alias) ~ " as varchar), "
        ~ veil._literal(options.domain) ~ ")")) -%}
{% endmacro %}
