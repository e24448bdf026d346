{#- Free text with the personal data that Veil finds replaced by its kind. It finds no names and no addresses. -#}

{% macro scrub(column, kinds=none, alias=none) %}
    {%- set problems = [] -%}
    {%- set options = veil._mask_options('scrub', {'kinds': kinds}, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('scrub', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('scrub', 'veil')(column, options, alias)) -%}
{% endmacro %}

{% macro default__scrub(column, options, alias) %}
    {%- do veil._require_udf('scrub', 'veil_scrub') -%}
    {%- do return(veil._once_a_value("veil_scrub(cast(" ~ veil._quote(column, alias) ~ " as varchar), "
        ~ veil._literal(tojson(options.kinds or [])) ~ ")")) -%}
{% endmacro %}
