{#- One value for one person, which only the holder of the key can make: an HMAC under a key of its own for each domain. -#}

{% macro pseudonym(column, domain=none, output='hex', length=none, normalize=none, version_prefix=false, alias=none) %}
    {%- set problems = [] -%}
    {%- set columns = veil._names(column, 'column', problems) -%}
    {%- set options = veil._mask_options('pseudonym', {
        'domain': domain, 'output': output, 'length': length, 'normalize': normalize, 'version_prefix': version_prefix,
    }, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('pseudonym', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('pseudonym', 'veil')(columns, options, alias)) -%}
{% endmacro %}

{% macro default__pseudonym(columns, options, alias) %}
    {%- do veil._require_udf('pseudonym', 'veil_pseudonym') -%}
    {%- set texts = [] -%}
    {%- for name in columns -%}
        {%- do texts.append("cast(" ~ veil._quote(name, alias) ~ " as varchar)") -%}
    {%- endfor -%}
    {%- set call = "veil_pseudonym(" ~ texts[0] if texts | length == 1
        else "veil_tuple_pseudonym([" ~ texts | join(", ") ~ "]" -%}
    {%- set call = veil._once_a_value(call ~ ", " ~ veil._literal(options.domain) ~ ", "
        ~ veil._literal(veil._pseudonym_form(options)) ~ ")") -%}
    {%- do return("cast(" ~ call ~ " as " ~ options.output ~ ")" if options.output in ('uuid', 'bigint') else call) -%}
{% endmacro %}

{#- How a pseudonym looks, as the UDF reads it. -#}
{% macro _pseudonym_form(options) %}
    {%- set form = {} -%}
    {%- for name in ('output', 'length', 'normalize', 'version_prefix') if options[name] -%}
        {%- do form.update({name: options[name]}) -%}
    {%- endfor -%}
    {%- do return(tojson(form)) -%}
{% endmacro %}

{#- A call of a keyed function as a correlated subquery: the engine then makes the call once for each distinct value of
    the table and joins the results back, where a bare call is made for every row. -#}
{% macro _once_a_value(call) %}
    {%- do return("(select " ~ call ~ ")") -%}
{% endmacro %}
