{#- Values from YAML, --vars and env_var() arrive as text as often as not. Each of these reads one value of one kind,
    or adds what is wrong with it to `problems` and returns none: never truthy by accident, never '10' < '9'. -#}

{% macro _integer(value, name, problems, minimum=none, maximum=none) %}
    {%- set number = value -%}
    {%- if value is string and modules.re.fullmatch('[+-]?[0-9]+', value.strip()) -%}
        {%- set number = value | int -%}
    {%- endif -%}
    {%- if number is not integer -%}
        {%- do problems.append(veil._must_be(name, "a whole number", value)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return(veil._within(number, value, name, problems, minimum, maximum)) -%}
{% endmacro %}

{% macro _number(value, name, problems, minimum=none, maximum=none) %}
    {%- set number = value -%}
    {%- set pattern = '[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?' -%}
    {%- if value is string and modules.re.fullmatch(pattern, value.strip()) -%}
        {%- set number = value | float -%}
    {%- endif -%}
    {%- if number is not number or number is boolean or number | string in ('nan', 'inf', '-inf') -%}
        {%- do problems.append(veil._must_be(name, "a number", value)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return(veil._within(number, value, name, problems, minimum, maximum)) -%}
{% endmacro %}

{% macro _boolean(value, name, problems) %}
    {%- if value is boolean -%}
        {%- do return(value) -%}
    {%- endif -%}
    {%- set text = value | string | lower | trim -%}
    {%- if text not in ('true', 'false') -%}
        {%- do problems.append(veil._must_be(name, "true or false", value)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return(text == 'true') -%}
{% endmacro %}

{% macro _choice(value, name, problems, choices) %}
    {%- if value is not string or value not in choices -%}
        {%- set nearest = veil._nearest(value, choices) if value is string else "" -%}
        {%- do problems.append(veil._must_be(name, "one of " ~ choices | join(", "), value) ~ nearest) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return(value) -%}
{% endmacro %}

{% macro _text(value, name, problems) %}
    {%- if value is not string or not value | trim -%}
        {%- do problems.append(veil._must_be(name, "a text", value)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return(value) -%}
{% endmacro %}

{#- A list of names. One name given as text is a list of one: Jinja would take it letter by letter. -#}
{% macro _names(value, name, problems) %}
    {%- set names = [value] if value is string else value -%}
    {%- if names is mapping or names is not sequence or not names or names | reject('string') | list -%}
        {%- do problems.append(veil._must_be(name, "a list of names, with at least one", value)) -%}
        {%- do return([]) -%}
    {%- endif -%}
    {%- set seen = [] -%}
    {%- for one in names -%}
        {%- if one | lower in seen -%}
            {%- do problems.append("`" ~ name ~ "` names `" ~ one ~ "` twice") -%}
        {%- endif -%}
        {%- do seen.append(one | lower) -%}
    {%- endfor -%}
    {%- do return(names | list) -%}
{% endmacro %}

{% macro _mapping(value, name, problems, keys=none) %}
    {%- if value is not mapping -%}
        {%- do problems.append(veil._must_be(name, "a mapping", value)) -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- for key in value if keys is not none and key not in keys -%}
        {%- do problems.append("`" ~ name ~ "` has no key `" ~ key ~ "`" ~ veil._nearest(key, keys)) -%}
    {%- endfor -%}
    {%- do return(value) -%}
{% endmacro %}

{% macro _within(number, value, name, problems, minimum, maximum) %}
    {%- set low = minimum is not none and number < minimum -%}
    {%- set high = maximum is not none and number > maximum -%}
    {%- if low or high -%}
        {%- set range = "between " ~ minimum ~ " and " ~ maximum if minimum is not none and maximum is not none
            else (minimum ~ " or more" if minimum is not none else maximum ~ " or less") -%}
        {%- do problems.append(veil._must_be(name, range, value)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return(number) -%}
{% endmacro %}

{% macro _must_be(name, expected, value) %}
    {%- do return("`" ~ name ~ "` must be " ~ expected ~ ". Got: " ~ ("'" ~ value ~ "'" if value is string else value)) -%}
{% endmacro %}
