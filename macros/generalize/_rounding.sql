{#- Rounding to the nearest multiple, halves up. Each level rounds the one below it, so that the levels nest: 47 is 50
    at level 1 and therefore 100 at level 2. Whole multiples only: a remainder by a whole number is exact on doubles. -#}

{% macro _check_rounding(spec, problems) %}
    {%- set found = problems | length -%}
    {%- set steps = [] -%}
    {%- for step in veil._list(spec.get('to')) -%}
        {%- do steps.append(veil._integer(step, 'to', problems, minimum=1)) -%}
    {%- endfor -%}
    {%- if not steps -%}
        {%- do problems.append("`to` must list whole numbers, such as {to: [10, 100]}") -%}
    {%- endif -%}
    {%- if problems | length > found -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- for i in range(1, steps | length) if steps[i] <= steps[i - 1] or steps[i] % steps[i - 1] != 0 -%}
        {%- do problems.append("`to` must each be a multiple of the one before, or the levels do not nest. Got: " ~ steps[i] ~ " after " ~ steps[i - 1]) -%}
    {%- endfor -%}
    {%- do return({'steps': steps, 'top_level': steps | length + 1}) -%}
{% endmacro %}

{#- The lower edge of the bin around a multiple C of a step lies half a step below C; where the step holds an even
    number of the one before, C - step / 2 is itself a rounded value, whose own bin reaches further down. All is doubled
    to stay whole. -#}
{% macro _label_rounding(value, checked, level) %}
    {%- set reach = namespace(doubled=0, before=0) -%}
    {%- for step in checked.steps[:level] -%}
        {%- set odd = reach.before > 0 and (step // reach.before) % 2 == 1 -%}
        {%- set reach.doubled = reach.doubled + step - (reach.before if odd else 0) -%}
        {%- set reach.before = step -%}
    {%- endfor -%}
    {%- set modulus = 2 * reach.before -%}
    {%- set raised = "(2 * " ~ adapter.dispatch('_as_double', 'veil')(value) ~ " + " ~ reach.doubled ~ ")" -%}
    {%- set remainder = "mod(mod(" ~ raised ~ ", " ~ modulus ~ ") + " ~ modulus ~ ", " ~ modulus ~ ")" -%}
    {#- Beyond this, doubles are further apart than a half. -#}
    {%- set guards = ["not (" ~ value ~ " > -1e15 and " ~ value ~ " < 1e15)"] -%}
    {%- set rounded = "cast((" ~ raised ~ " - " ~ remainder ~ ") / 2 as " ~ dbt.type_bigint() ~ ")" -%}
    {%- do return({'guards': guards, 'otherwise': "cast(" ~ rounded ~ " as " ~ dbt.type_string() ~ ")"}) -%}
{% endmacro %}

{#- A type that holds every whole number below 1e15 and its double, so that no sum overflows with an error that shows it. -#}
{% macro default___as_double(value) %}
    {%- do return("cast(" ~ value ~ " as " ~ dbt.type_numeric() ~ ")") -%}
{% endmacro %}

{% macro duckdb___as_double(value) %}
    {%- do return("cast(" ~ value ~ " as double)") -%}
{% endmacro %}
