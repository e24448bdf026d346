{#- Exact decimal arithmetic for the cuts: 0.1 + 0.2 has to be 0.3. Numbers become whole units of 10 ** -scale. -#}

{% macro _scaled(values, name, problems) %}
    {%- set parts = [] -%}
    {%- for value in values -%}
        {%- set text = ('%.15f' | format(value)) if value is float and 'e' in value | string else value | string | trim -%}
        {%- if value is boolean or not modules.re.fullmatch('[+-]?[0-9]+([.][0-9]+)?', text) or (value is float and text | float != value) -%}
            {%- do problems.append(veil._must_be(name, "made of plain numbers", value)) -%}
        {%- else -%}
            {%- set whole, fraction = (text.lstrip('+-') ~ '.').split('.')[:2] -%}
            {%- do parts.append([-1 if text.startswith('-') else 1, whole, fraction.rstrip('0')]) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set scale = parts | map(attribute=2) | map('length') | list | max if parts else 0 -%}
    {%- set units = [] -%}
    {%- for sign, whole, fraction in parts -%}
        {%- do units.append(sign * ((whole ~ fraction.ljust(scale, '0')) | int)) -%}
    {%- endfor -%}
    {%- do return({'units': units, 'scale': scale}) -%}
{% endmacro %}

{% macro _decimal_text(units, scale) %}
    {%- set digits = (units | abs | string).rjust(scale + 1, '0') -%}
    {%- set fraction = digits[(digits | length) - scale:].rstrip('0') if scale else '' -%}
    {%- do return(('-' if units < 0 else '') ~ digits[:(digits | length) - scale] ~ ('.' ~ fraction if fraction else '')) -%}
{% endmacro %}

{#- One number, or a list of them, as a list. -#}
{% macro _list(value) %}
    {%- do return([] if value is none else value | list if value is sequence and value is not string and value is not mapping else [value]) -%}
{% endmacro %}

{#- Larger than every number: NaN and infinity are not below it. -#}
{% macro _infinity() %}
    {%- do return(adapter.dispatch('_infinity', 'veil')()) -%}
{% endmacro %}

{% macro default___infinity() %}
    {%- do return("cast('infinity' as " ~ dbt.type_float() ~ ")") -%}
{% endmacro %}

{% macro duckdb___infinity() %}
    {%- do return("cast('infinity' as double)") -%}
{% endmacro %}

{#- True of NaN, infinity and numbers with so many digits that comparing them with a cut of this scale fails, with an error
    that shows them. -#}
{% macro _out_of_decimals(value, scale) %}
    {%- set limit = "1e" ~ (38 - scale) -%}
    {%- do return("not (" ~ value ~ " > -" ~ limit ~ " and " ~ value ~ " < " ~ limit ~ ")") -%}
{% endmacro %}
