{#- Every project-wide setting of Veil, read in one place. A macro that is called from a consumer's model does not
    see this package's own vars, so the defaults live here and not in dbt_project.yml. -#}

{% macro _setting(name) %}
    {%- set defaults = veil._setting_defaults() -%}
    {%- if name not in defaults -%}
        {%- do veil._fail('_setting', ["there is no setting `veil__" ~ name ~ "`" ~ veil._nearest(name, defaults.keys())]) -%}
    {%- endif -%}
    {%- do return(var('veil__' ~ name, defaults[name])) -%}
{% endmacro %}

{% macro _setting_defaults() %}
    {%- do return({
        'schema': 'veil',
        'hierarchies': {},
        'budgets': {},
        'remedy_passes': 25,
        'ledger_head': none,
        'audiences': {'internal': 5, 'partner': 20, 'public': 50, 'mobility': 100},
    }) -%}
{% endmacro %}
