{#- The year of birth; the oldest share one year, which stands for "that year or before". -#}

{% macro year_of_birth_with_cap(column, as_of=none, cap=89, alias=none) %}
    {%- set problems = [] -%}
    {%- set options = veil._mask_options('year_of_birth', {'as_of': as_of, 'cap': cap}, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('year_of_birth_with_cap', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('year_of_birth_with_cap', 'veil')(column, options, alias)) -%}
{% endmacro %}

{% macro default__year_of_birth_with_cap(column, options, alias) %}
    {%- set year = "extract(year from " ~ veil._quote(column, alias) ~ ")" -%}
    {#- Who was born in the year of `as_of` minus cap minus one may be older than cap on that day, or not yet. -#}
    {%- set oldest = (options.as_of | string)[:4] | int - options.cap - 1 -%}
    {%- do return("case when " ~ year ~ " <= " ~ oldest ~ " then " ~ oldest ~ " else " ~ year ~ " end") -%}
{% endmacro %}
