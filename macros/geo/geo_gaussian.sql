{#- Move each point by a vector that is normal on each axis. -#}

{% macro geo_gaussian(relation, sigma, x='lon', y='lat') %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_spec('geo_gaussian', relation, x, y, kwargs, problems, noise=true) -%}
    {%- set sigma = veil._number(sigma, 'sigma', problems, minimum=0.001) -%}
    {%- if problems -%}
        {%- do veil._fail('geo_gaussian', problems) -%}
    {%- endif -%}
    {%- do return(veil._geo_noise(spec, 'gaussian', [sigma])) -%}
{% endmacro %}
