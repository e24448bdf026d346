{#- dbt run-operation veil.detokenize --args '{tokens: [tok_…], domain: patients, reason: "request 17 of the person", to: answer.csv}'
    Writes the values to a new private file, and an audit row first. No value goes through SQL, a log or the terminal. -#}

{% macro detokenize(tokens, domain, reason, to) %}
    {%- set found = veil._reveal('detokenize', 'veil_detokenize', tokens, domain, reason, to) -%}
    {%- if execute -%}
        {%- do log("veil: " ~ found ~ " of " ~ (1 if tokens is string else tokens | length) ~ " values written to " ~ to, info=true) -%}
    {%- endif -%}
{% endmacro %}

{#- dbt run-operation veil.forget --args '{tokens: [tok_…], domain: patients, reason: "erasure request 18"}'
    Deletes the rows of the tokens: they mean nothing from then on. -#}
{% macro forget(tokens, domain, reason) %}
    {%- set found = veil._reveal('forget', 'veil_forget', tokens, domain, reason) -%}
    {%- if execute -%}
        {%- do log("veil: " ~ found ~ " of " ~ (1 if tokens is string else tokens | length) ~ " tokens deleted from the vault", info=true) -%}
    {%- endif -%}
{% endmacro %}

{#- dbt run-operation veil.decrypt --args '{values: […], domain: cards, reason: "…", to: answer.csv, check: luhn}' -#}
{% macro decrypt(values, domain, reason, to, alphabet='digits', separators=' -', check='none', key_version=0) %}
    {%- set problems = [] -%}
    {%- set options = veil._mask_options('fpe', {
        'domain': domain, 'alphabet': alphabet, 'separators': separators, 'check': check,
    }, none, problems) -%}
    {%- set version = veil._integer(key_version, 'key_version', problems, minimum=0) -%}
    {%- if problems -%}
        {%- do veil._fail('decrypt', problems) -%}
    {%- endif -%}
    {%- set form = {'alphabet': options.alphabet, 'separators': options.separators, 'check': options.check} -%}
    {%- set found = veil._reveal('decrypt', 'veil_decrypt', values, domain, reason, to, [tojson(form), version]) -%}
    {%- if execute -%}
        {%- do log("veil: " ~ found ~ " values written to " ~ to, info=true) -%}
    {%- endif -%}
{% endmacro %}

{#- Checks, the audit table, and the call of the UDF that writes the audit row and does the work. -#}
{% macro _reveal(macro, function, given, domain, reason, to=none, more=[]) %}
    {%- set problems = [] -%}
    {%- set given = veil._names(given, 'values' if macro == 'decrypt' else 'tokens', problems) -%}
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
