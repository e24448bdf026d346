{#- dbt run-operation veil.decrypt --args '{values: […], domain: cards, reason: "…", to: answer.csv, check: luhn}' -#}
{% macro decrypt(values, domain, reason, to, alphabet='digits', separators=' -', check='none', key_version=0) %}
    {%- set problems = [] -%}
    {%- set options = veil._mask_options('fpe', {
        'domain': domain, 'alphabet': alphabet, 'separators': separators, 'check': check,
    }, none, problems) -%}
    {%- set version = veil._integer(key_version, 'key_version', problems, minimum=0) -%}
    {%- if problems -%}
        {%- do veil._fail('decrypt', problems) -%}
    {%- endif -%}
    {%- set form = {'alphabet': options.alphabet, 'separators': options.separators, 'check': options.check} -%}
    {%- set found = veil._reveal('decrypt', 'veil_decrypt', values, domain, reason, to, [tojson(form), version]) -%}
    {%- if execute -%}
        {%- do log("veil: " ~ found ~ " values written to " ~ to, info=true) -%}
    {%- endif -%}
{% endmacro %}
