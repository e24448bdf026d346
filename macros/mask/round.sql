{#- A number to the nearest multiple of a whole number, or to so many decimals. -#}

{% macro round(column, to=none, digits=none, alias=none) %}
    {%- set problems = [] -%}
    {%- set options = veil._mask_options('round', {'to': to, 'digits': digits}, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('round', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('round', 'veil')(column, options, alias)) -%}
{% endmacro %}

{% macro default__round(column, options, alias) %}
    {%- set number = veil._quote(column, alias) -%}
    {%- if options.digits is not none -%}
        {%- do return("round(" ~ number ~ ", " ~ options.digits ~ ")") -%}
    {%- endif -%}
    {%- do return("cast(round(" ~ number ~ " / " ~ options.to ~ ".0) as bigint) * " ~ options.to) -%}
{% endmacro %}

{#- DuckDB's cast stops on NaN and on what no bigint holds, and prints it. Such a value becomes NULL. -#}
{% macro duckdb__round(column, options, alias) %}
    {%- set number = veil._quote(column, alias) -%}
    {%- if options.digits is not none -%}
        {%- do return(veil.default__round(column, options, alias)) -%}
    {%- endif -%}
    {%- do return("try_cast(round(" ~ number ~ " / " ~ options.to ~ ".0) as bigint) * " ~ options.to) -%}
{% endmacro %}
