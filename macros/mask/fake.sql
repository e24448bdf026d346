{#- A made-up name, e-mail or phone number, the same one for the same value under one key. For test environments. -#}

{% macro fake(column, what=none, domain=none, locale='en_US', alias=none) %}
    {%- set problems = [] -%}
    {%- set options = veil._mask_options('fake', {'what': what, 'domain': domain, 'locale': locale}, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('fake', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('fake', 'veil')(column, options, alias)) -%}
{% endmacro %}

{% macro default__fake(column, options, alias) %}
    {%- do veil._require_udf('fake', 'veil_fake') -%}
    {%- do return(veil._once_a_value("veil_fake(cast(" ~ veil._quote(column, alias) ~ " as varchar), "
        ~ veil._literal(options.domain) ~ ", " ~ veil._literal(options.what) ~ ", " ~ veil._literal(options.locale) ~ ")")) -%}
{% endmacro %}
