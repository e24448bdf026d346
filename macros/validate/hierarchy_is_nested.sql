{#- Fails with one row for each way in which a lookup relation is not a hierarchy: see veil.hierarchy_violations. -#}

{% test hierarchy_is_nested(model, columns=none) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- if columns is none and model is string -%}
        {%- do problems.append("with `where`, give `columns`: the relation is not known by name then") -%}
    {%- elif columns is none -%}
        {%- set columns = veil._level_columns(adapter.get_columns_in_relation(model) | map(attribute='name') | list, model, problems) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('hierarchy_is_nested', problems) -%}
    {%- endif -%}
{{ veil.hierarchy_violations(model, columns) }}
{% endtest %}
