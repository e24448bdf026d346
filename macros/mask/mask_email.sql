{#- `***@gmail.com`: the local part is always hidden, the domain unless it is listed or common enough to name nobody. -#}

{% macro mask_email(column, keep_domains=none, rare_below=none, unit=none, alias=none) %}
    {%- set problems = [] -%}
    {%- set options = veil._mask_options('email', {
        'keep_domains': keep_domains, 'rare_below': rare_below, 'unit': unit,
    }, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('mask_email', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('mask_email', 'veil')(column, options, alias)) -%}
{% endmacro %}

{% macro default__mask_email(column, options, alias) %}
    {%- set text = "cast(" ~ veil._quote(column, alias) ~ " as varchar)" -%}
    {%- set domain = "lower(regexp_extract(" ~ text ~ ", '@([^@]*)$', 1))" -%}
    {%- set shown = [] -%}
    {%- if options.keep_domains -%}
        {%- set literals = [] -%}
        {%- for name in options.keep_domains -%}
            {%- do literals.append(veil._literal(name | lower)) -%}
        {%- endfor -%}
        {%- do shown.append(domain ~ " in (" ~ literals | join(", ") ~ ")") -%}
    {%- endif -%}
    {%- if options.rare_below is not none -%}
        {%- set people = "count(*)" if options.unit is none else "count(distinct " ~ veil._quote(options.unit, alias) ~ ")" -%}
        {%- do shown.append(people ~ " over (partition by " ~ domain ~ ") >= " ~ options.rare_below) -%}
    {%- endif -%}
    {%- set hidden = " when " ~ text ~ " is not null then '***@***' end" -%}
    {%- if not shown -%}
        {%- do return("case" ~ hidden) -%}
    {%- endif -%}
    {%- do return("case when " ~ text ~ " like '%@_%' and (" ~ shown | join(" or ") ~ ") then '***@' || " ~ domain ~ hidden) -%}
{% endmacro %}
