{#- Stop with every problem at once. `where` is the macro, or the macro and the model, that found them. -#}

{% macro _fail(where, problems) %}
    {%- set text = ["veil." ~ where ~ "():"] -%}
    {%- for problem in problems -%}
        {%- do text.append("  - " ~ problem if problems | length > 1 else problem) -%}
    {%- endfor -%}
    {%- do exceptions.raise_compiler_error(text | join(" " if problems | length == 1 else "\n")) -%}
{% endmacro %}
