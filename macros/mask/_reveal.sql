{#- Checks, the audit table, and the call of the UDF that writes the audit row and does the work. -#}
{% macro _reveal(macro, function, given, domain, reason, to=none, more=[]) %}
    {%- set problems = [] -%}
    {%- set given = [given] if given is string else given -%}
    {%- if given is not sequence or given is mapping or not given or given | reject('string') | list -%}
        {%- do problems.append("`" ~ ('values' if macro == 'decrypt' else 'tokens')
            ~ "` must be a list of texts, with at least one. Put digits in quotes: ['0123…']") -%}
    {%- endif -%}
    {%- do veil._text(domain, 'domain', problems) -%}
    {%- if reason is not string or reason | trim | length < 10 -%}
        {%- do problems.append("`reason` must say why, in 10 characters or more") -%}
    {%- endif -%}
    {%- if macro != 'forget' -%}
        {%- do veil._text(to, 'to', problems) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail(macro, problems) -%}
    {%- endif -%}
    {%- if not execute -%}
        {%- do return(0) -%}
    {%- endif -%}
    {%- do veil._require_udf(macro, function) -%}
    {%- set audit = api.Relation.create(database=target.database, schema=veil._setting('schema'), identifier='reveals', type='table') -%}
    {%- do veil._create_once(audit, veil._reveals_columns()) -%}
    {%- do adapter.commit() -%}
    {%- set values = [] -%}
    {%- for value in given -%}
        {%- do values.append(veil._literal(value)) -%}
    {%- endfor -%}
    {%- set arguments = [veil._literal(audit | string), veil._literal(invocation_id), "[" ~ values | join(", ") ~ "]",
        veil._literal(domain), veil._literal(reason)] -%}
    {%- if to is not none -%}
        {%- do arguments.append(veil._literal(to)) -%}
    {%- endif -%}
    {%- for value in more -%}
        {%- do arguments.append(veil._literal(value)) -%}
    {%- endfor -%}
    {%- do return(run_query("select " ~ function ~ "(" ~ arguments | join(", ") ~ ")").columns[0].values()[0]) -%}
{% endmacro %}

{#- `veil.reveals`: who asked to see through which tokens or encrypted values, when and why. -#}
{% macro _reveals_columns() %}
    {%- do return({
        'revealed_at': dbt.type_timestamp(),
        'revealed_by': dbt.type_string(),
        'operation': dbt.type_string(),
        'domain': dbt.type_string(),
        'given': dbt.type_string(),
        'reason': dbt.type_string(),
        'invocation_id': dbt.type_string(),
    }) -%}
{% endmacro %}
