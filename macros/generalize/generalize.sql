{#- One SQL expression: the label of a column's value at a level of a hierarchy. Level 0 is the value, the top level is
    '*' whatever the value; in between it is a label of the hierarchy, and never the value and never NULL by accident. -#}

{% macro generalize(column, hierarchy, level, on_unmapped='fail', relation_alias=none, nulls='keep') %}
    {%- if not execute -%}
        {%- do veil._depend_on_lookup(hierarchy) -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- do veil._text(column, 'column', problems) -%}
    {%- do veil._choice(on_unmapped, 'on_unmapped', problems, ['fail', 'suppress', 'mark']) -%}
    {%- do veil._choice(nulls, 'nulls', problems, ['keep', 'suppress', 'fail']) -%}
    {%- set checked = veil._hierarchy(hierarchy, problems) -%}
    {%- set level = veil._integer(level, 'level', problems, minimum=0) -%}
    {%- if not problems and checked.top_level is not none and level > checked.top_level -%}
        {%- do problems.append(veil._must_be('level', "between 0 and " ~ checked.top_level ~ ", the top level of " ~ checked.subject, level)) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('generalize', problems, "column `" ~ column ~ "`, " ~ checked.subject) -%}
    {%- endif -%}
    {%- set value = veil._quote(column, relation_alias) -%}
    {%- if level == 0 -%}
        {%- do return(value) -%}
    {%- elif level == checked.top_level or checked.top_level is none -%}
        {%- do return("'*'") -%}
    {%- endif -%}
    {%- set unmapped = veil._unmapped(value, column, checked, on_unmapped) -%}
    {%- do return(adapter.dispatch('generalize', 'veil')(value, column, checked, level, unmapped, nulls) | trim) -%}
{% endmacro %}

{% macro default__generalize(value, column, checked, level, unmapped, nulls) %}
{%- set kind = veil._hierarchy_kinds()[checked.kind] -%}
{%- set parts = kind['label'](value, checked, level) -%}
{%- set null_text = "column `" ~ column ~ "` holds NULL, and `nulls` is fail" -%}
case
    when {{ value }} is null then {{
        'null' if nulls == 'keep' else "'*'" if nulls == 'suppress' else veil._raise(null_text, value) }}
    {%- for refusal in parts.get('refusals', []) %}
    when {{ refusal[0] }} then {{ veil._raise("column `" ~ column ~ "` " ~ refusal[1], value) }}
    {%- endfor %}
    {%- for guard in parts.get('guards', []) %}
    when {{ guard }} then {{ unmapped }}
    {%- endfor %}
    {%- for condition, label in parts.get('branches', []) %}
    when {{ condition }} then {{ label }}
    {%- endfor %}
    {%- if parts.get('otherwise') is none %}
    else {{ unmapped }}
    {%- elif parts.get('partial') %}
    else coalesce({{ parts.otherwise }}, {{ unmapped }})
    {%- else %}
    else {{ parts.otherwise }}
    {%- endif %}
end
{%- endmacro %}

{#- What a value without a label becomes. -#}
{% macro _unmapped(value, column, checked, on_unmapped) %}
    {%- if on_unmapped == 'suppress' -%}
        {%- do return("'*'") -%}
    {%- elif on_unmapped == 'mark' -%}
        {%- do return(veil._literal(veil._unmapped_label())) -%}
    {%- endif -%}
    {%- do return(veil._raise("column `" ~ column ~ "` holds a value that " ~ checked.subject
        ~ " does not map. Add it to the hierarchy, or set `on_unmapped` to suppress", value)) -%}
{% endmacro %}

{#- An expression that stops the query with a text, and is text itself. Engines that have no such function are made to
    cast the text to a number; it takes in no character of the value, but depends on it, so that no planner folds it. -#}
{% macro _raise(text, value, macro='generalize') %}
    {%- do return(adapter.dispatch('_raise', 'veil')("veil." ~ macro ~ "(): " ~ text, value) | trim) -%}
{% endmacro %}

{% macro default___raise(text, value) -%}
cast(cast({{ veil._literal(text) }} || substring(cast({{ value }} as {{ dbt.type_string() }}), 1, 0) as {{ dbt.type_int() }}) as {{ dbt.type_string() }})
{%- endmacro %}

{% macro duckdb___raise(text, value) -%}
error({{ veil._literal(text) }})
{%- endmacro %}
