{#- A value of the same form, by NIST's FF1: what reads a card number still reads one. Reversible by who has the key. -#}

{% macro fpe(column, domain=none, alphabet='digits', separators=' -', check='none', alias=none) %}
    {%- set problems = [] -%}
    {%- set options = veil._mask_options('fpe', {
        'domain': domain, 'alphabet': alphabet, 'separators': separators, 'check': check,
    }, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('fpe', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('fpe', 'veil')(column, options, alias)) -%}
{% endmacro %}

{% macro default__fpe(column, options, alias) %}
    {%- do veil._require_udf('fpe', 'veil_fpe') -%}
    {%- set form = {'alphabet': options.alphabet, 'separators': options.separators, 'check': options.check, 'column': column} -%}
    {%- do return(veil._once_a_value("veil_fpe(cast(" ~ veil._quote(column, alias) ~ " as varchar), "
        ~ veil._literal(options.domain) ~ ", " ~ veil._literal(tojson(form)) ~ ")")) -%}
{% endmacro %}
