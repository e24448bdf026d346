{#- One constant for every value; NULL stays NULL unless `nulls` is hidden too. -#}

{% macro redact(column, text='[redacted]', nulls='keep', alias=none) %}
    {%- set problems = [] -%}
    {%- set options = veil._mask_options('redact', {'text': text, 'nulls': nulls}, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('redact', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('redact', 'veil')(column, options, alias)) -%}
{% endmacro %}

{% macro default__redact(column, options, alias) %}
    {%- set constant = veil._literal(options.text) -%}
    {%- if options.nulls == 'hide' -%}
        {%- do return(constant) -%}
    {%- endif -%}
    {%- do return("case when " ~ veil._quote(column, alias) ~ " is not null then " ~ constant ~ " end") -%}
{% endmacro %}
