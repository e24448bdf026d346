{#- Move each point by a vector that is uniform over the area of a ring. -#}

{% macro geo_donut(relation, minimum, maximum, x='lon', y='lat') %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_spec('geo_donut', relation, x, y, kwargs, problems, noise=true) -%}
    {%- set low = veil._number(minimum, 'minimum', problems, minimum=0) -%}
    {%- set high = veil._number(maximum, 'maximum', problems, minimum=0.001) -%}
    {%- if low is not none and high is not none and low > high -%}
        {%- do problems.append("`minimum` must be no more than `maximum`. Got: " ~ minimum ~ " and " ~ maximum) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('geo_donut', problems) -%}
    {%- endif -%}
    {%- do return(veil._geo_noise(spec, 'donut', [low, high])) -%}
{% endmacro %}
