{#- The expression that releases one column of a policy under its mask. -#}

{% macro masked(column, alias=none) %}
    {%- set problems = [] -%}
    {%- set mask = veil._mask_policy(column.mask, column.name, problems) -%}
    {%- if not problems and mask.kind == 'drop' -%}
        {%- do problems.append("column `" ~ column.name ~ "` has the mask `drop`: it is left out, and has no expression") -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('masked', problems) -%}
    {%- endif -%}
    {%- set macro = veil[veil._mask_kinds()[mask.kind].macro] -%}
    {%- set options = {} -%}
    {%- for name, value in mask.items() if name != 'kind' -%}
        {%- do options.update({name: value}) -%}
    {%- endfor -%}
    {%- do return(macro(column.name, alias=alias, **options)) -%}
{% endmacro %}
