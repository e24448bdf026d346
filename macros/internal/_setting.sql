{#- Every project-wide setting of Veil, read in one place. A macro that is called from a consumer's model does not
    see this package's own vars, so the defaults live here and not in dbt_project.yml. The demo's own
    settings are called `veil_demo__…`: this package's models would take `veil__…` of its dbt_project.yml to a consumer. -#}

{% macro _setting(name) %}
    {%- set defaults = veil._setting_defaults() -%}
    {%- if name not in defaults -%}
        {%- do veil._fail('_setting', ["there is no setting `veil__" ~ name ~ "`" ~ veil._nearest(name, defaults.keys())]) -%}
    {%- endif -%}
    {%- set default = var('veil_demo__' ~ name, defaults[name]) if target.profile_name == 'veil_demo' else defaults[name] -%}
    {%- do return(var('veil__' ~ name, default)) -%}
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
