{#- Stop with every problem at once. `macro` is the public macro the user called, `subject` what it was called for. -#}

{% macro _fail(macro, problems, subject=none) %}
    {%- set head = "veil." ~ macro ~ "(): " ~ (subject ~ ": " if subject is not none else "") -%}
    {%- if problems | length == 1 -%}
        {%- do exceptions.raise_compiler_error(head ~ problems[0]) -%}
    {%- endif -%}
    {%- do exceptions.raise_compiler_error(head ~ problems | length ~ " problems\n  - " ~ problems | join("\n  - ")) -%}
{% endmacro %}
