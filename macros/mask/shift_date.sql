{#- All dates of one person move by one number of days that only the key gives, so the days between them stay. -#}

{% macro shift_date(column, unit=none, domain=none, days=365, type='date', alias=none) %}
    {%- set problems = [] -%}
    {%- set options = veil._mask_options('shift', {
        'unit': unit, 'domain': domain, 'days': days, 'type': type,
    }, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('shift_date', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('shift_date', 'veil')(column, options, alias)) -%}
{% endmacro %}

{% macro default__shift_date(column, options, alias) %}
    {%- do veil._require_udf('shift_date', 'veil_shift_days') -%}
    {%- set person = "cast(" ~ veil._quote(options.unit, alias) ~ " as varchar)" -%}
    {%- set shift = veil._once_a_value("veil_shift_days(" ~ person ~ ", " ~ veil._literal(options.domain) ~ ", '" ~ options.days ~ "')") -%}
    {%- do return("cast(" ~ veil._quote(column, alias) ~ " + to_days(" ~ shift ~ ") as " ~ options.type ~ ")") -%}
{% endmacro %}
