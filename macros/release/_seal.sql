{#- The gate cannot see from a column what it was made of. So it takes no SQL but the one that a macro wrote as a whole: the
    macro seals its text, and the materialization finds the seal unbroken, with nothing but comments around it. -#}

{% macro _sealed(text, macro) %}
    {%- do return(text | trim ~ "\n" ~ veil._seal(macro) ~ local_md5(text | trim) ~ "\n") -%}
{% endmacro %}

{% macro _seal(macro) %}
    {%- do return("-- all of the above was written by veil." ~ macro ~ ": ") -%}
{% endmacro %}

{% macro _check_sealed(sql, macro) %}
    {%- set parts = sql.rsplit(veil._seal(macro), 1) -%}
    {%- set text = modules.re.sub('^(\\s*--[^\\n]*\\n)*', '', parts[0]) | trim -%}
    {%- set after = modules.re.sub('--[^\\n]*', '', parts[1][32:]) | trim if parts | length == 2 else none -%}
    {%- if after is none or after or local_md5(text) != parts[1][:32] -%}
        {%- do veil._fail('release', ["its policy is that of a model which holds `{{ veil." ~ macro ~ "(ref('…')) }}` and nothing around it but "
            ~ "comments: what SQL of another hand makes of a column cannot be checked. Join, filter and derive columns in the staging model"],
            "model `" ~ model.name ~ "`") -%}
    {%- endif -%}
{% endmacro %}
