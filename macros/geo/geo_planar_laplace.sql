{#- Move each point by planar Laplace noise: a report is geo-indistinguishable with `epsilon` a kilometre, and a person
    of T reports with T times that. -#}

{% macro geo_planar_laplace(relation, epsilon, x='lon', y='lat', max_reports=1, snap=1) %}
    {%- set problems = [] -%}
    {%- set spec = veil._geo_spec('geo_planar_laplace', relation, x, y, kwargs, problems, noise=true) -%}
    {%- set epsilon = veil._number(epsilon, 'epsilon', problems, minimum=0.000001) -%}
    {%- set snap = veil._number(snap, 'snap', problems, minimum=0.001) -%}
    {%- do spec.update({'reports': veil._integer(max_reports, 'max_reports', problems, minimum=1)}) -%}
    {%- if spec.reports is not none and spec.reports > 1 and spec.unit is none -%}
        {%- do problems.append("`max_reports` bounds the points of one person: name the column of the person in `unit`") -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('geo_planar_laplace', problems) -%}
    {%- endif -%}
    {%- do return(veil._geo_noise(spec, 'planar_laplace', [epsilon, snap])) -%}
{% endmacro %}
