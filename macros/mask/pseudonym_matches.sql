{#- Whether a stored pseudonym is that of a value, under the current key or a retired one. -#}

{% macro pseudonym_matches(column, pseudonym, domain=none, output='hex', length=none, normalize=none, version_prefix=false, alias=none) %}
    {%- set problems = [] -%}
    {%- do veil._text(pseudonym, 'pseudonym', problems) -%}
    {%- do veil._text(column, 'column', problems) -%}
    {%- set options = veil._mask_options('pseudonym', {
        'domain': domain, 'output': output, 'length': length, 'normalize': normalize, 'version_prefix': version_prefix,
    }, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('pseudonym_matches', problems) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('pseudonym_matches', 'veil')(column, pseudonym, options, alias)) -%}
{% endmacro %}

{% macro default__pseudonym_matches(column, pseudonym, options, alias) %}
    {%- do veil._require_udf('pseudonym_matches', 'veil_pseudonym_matches') -%}
    {%- do return("veil_pseudonym_matches(cast(" ~ veil._quote(column, alias) ~ " as varchar), cast("
        ~ veil._quote(pseudonym, alias) ~ " as varchar), " ~ veil._literal(options.domain) ~ ", "
        ~ veil._literal(veil._pseudonym_form(options)) ~ ")") -%}
{% endmacro %}
