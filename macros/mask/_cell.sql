{#- The columns within whose equal values rows are moved. One that is moved itself would tie every value to its place. -#}

{% macro _cell(within, moved, problems) %}
    {%- set cell = veil._names(within, 'within', problems) if within else [] -%}
    {%- for name in cell if name | lower in moved | map('lower') | list -%}
        {%- do problems.append("`within` names `" ~ name ~ "`, which is moved itself: nothing would change") -%}
    {%- endfor -%}
    {%- do return(cell) -%}
{% endmacro %}
