{#- The first and last characters of a text; a text too short to hide anything is hidden whole. -#}

{% macro partial(column, first=0, last=0, fill='*', keep_length=true, alias=none) %}
    {%- set problems = [] -%}
    {%- set options = veil._mask_options('partial', {
        'first': first, 'last': last, 'fill': fill, 'keep_length': keep_length,
    }, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('partial', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('partial', 'veil')(column, options, alias)) -%}
{% endmacro %}

{% macro default__partial(column, options, alias) %}
    {%- set text = "cast(" ~ veil._quote(column, alias) ~ " as " ~ dbt.type_string() ~ ")" -%}
    {%- set shown = options.first + options.last -%}
    {%- set fill = veil._literal(options.fill) -%}
    {%- set hidden = "repeat(" ~ fill ~ ", cast(length(" ~ text ~ ") - " ~ shown ~ " as integer))" if options.keep_length
        else "repeat(" ~ fill ~ ", 4)" -%}
    {%- set whole = "repeat(" ~ fill ~ ", " ~ ("cast(length(" ~ text ~ ") as integer)" if options.keep_length else "4") ~ ")" -%}
    {%- set parts = [] -%}
    {%- if options.first -%}
        {%- do parts.append("left(" ~ text ~ ", " ~ options.first ~ ")") -%}
    {%- endif -%}
    {%- do parts.append(hidden) -%}
    {%- if options.last -%}
        {%- do parts.append("right(" ~ text ~ ", " ~ options.last ~ ")") -%}
    {%- endif -%}
    {%- do return("case when length(" ~ text ~ ") > " ~ shown ~ " then " ~ parts | join(" || ")
        ~ " when length(" ~ text ~ ") >= 0 then " ~ whole ~ " end") -%}
{% endmacro %}
