{#- Everything at or beyond a bound becomes that bound. -#}

{% macro top_bottom(column, lower=none, upper=none, alias=none) %}
    {%- set problems = [] -%}
    {%- set options = veil._mask_options('top_bottom', {'lower': lower, 'upper': upper}, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('top_bottom', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('top_bottom', 'veil')(column, options, alias)) -%}
{% endmacro %}

{% macro default__top_bottom(column, options, alias) %}
    {%- set number = veil._quote(column, alias) -%}
    {%- set branches = [] -%}
    {%- if options.lower is not none -%}
        {%- do branches.append("when " ~ number ~ " <= " ~ options.lower ~ " then " ~ options.lower) -%}
    {%- endif -%}
    {%- if options.upper is not none -%}
        {%- do branches.append("when " ~ number ~ " >= " ~ options.upper ~ " then " ~ options.upper) -%}
    {%- endif -%}
    {%- do return("case " ~ branches | join(" ") ~ " else " ~ number ~ " end") -%}
{% endmacro %}
