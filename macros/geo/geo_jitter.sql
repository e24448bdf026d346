{#- Move each point by a vector that is uniform over a disc. -#}

{% macro geo_jitter(relation, radius, x='lon', y='lat') %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_spec('geo_jitter', relation, x, y, kwargs, problems, noise=true) -%}
    {%- set radius = veil._number(radius, 'radius', problems, minimum=0.001) -%}
    {%- if problems -%}
        {%- do veil._fail('geo_jitter', problems) -%}
    {%- endif -%}
    {%- do return(veil._geo_noise(spec, 'jitter', [radius])) -%}
{% endmacro %}
