{#- Names and values as SQL text. Nothing that comes from YAML or data reaches SQL by another way. -#}

{% macro _quote(column_name, alias=none) %}
    {%- set quoted = adapter.quote(column_name | replace('"', '""')) if adapter.quote('x') == '"x"'
        else adapter.quote(column_name | replace('`', '``')) -%}
    {%- do return(quoted if alias is none else alias ~ '.' ~ quoted) -%}
{% endmacro %}

{#- The value as a literal of its own type: text quoted and escaped, numbers as they are, none as null. -#}
{% macro _literal(value) %}
    {%- do return(adapter.dispatch('_literal', 'veil')(value)) -%}
{% endmacro %}

{% macro default___literal(value) %}
    {%- if value is none -%}
        {%- do return('null') -%}
    {%- elif value is boolean -%}
        {%- do return('true' if value else 'false') -%}
    {%- elif value is number -%}
        {%- do return(value | string) -%}
    {%- endif -%}
    {%- do return("'" ~ (value | string | replace("'", "''")) ~ "'") -%}
{% endmacro %}
