{#- The noise of one query of a hand-written release: the call of the UDF, with the scale that the ledger reserves. The
    policy's `dp.queries` must declare the query, with the same sensitivity and share where they are given here. -#}

{% macro dp_noise(expression, sensitivity=none, share=none, query=none) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set subject = "model `" ~ model.name ~ "`" -%}
    {%- if config.get('materialized') != 'release' -%}
        {%- do veil._fail('dp_noise', ["a model that draws noise must be `materialized: release`: only a release reserves its budget, and a view or an "
            ~ "ephemeral model would draw again at every read. Got: '" ~ config.get('materialized') ~ "'"], subject) -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- set declared = veil._dp_query(query, sensitivity, share, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('dp_noise', problems, subject) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('dp_noise', 'veil')(expression, veil._mechanisms()[declared.name])) -%}
{% endmacro %}

{% macro default__dp_noise(expression, mechanism) %}
    {%- do veil._fail('dp_noise', ["the noise comes from Veil's UDFs, which run on DuckDB. Aggregate there; the released table can go anywhere. Got: '"
        ~ target.type ~ "'"]) -%}
{% endmacro %}

{% macro duckdb__dp_noise(expression, mechanism) -%}
veil_{{ mechanism.kind }}('{{ veil._release_id() }}', '{{ mechanism.query }}', ({{ expression }}), {{ mechanism.scale }})
{%- endmacro %}

{#- The declared query that is meant: by name, or the only one. -#}
{% macro _dp_query(name, sensitivity, share, problems) %}
    {%- set dp = veil._declared_policy(model).get('dp') or {} -%}
    {%- set queries = dp.get('queries') if dp is mapping else none -%}
    {%- set queries = queries | select('mapping') | list if queries is not string and queries is sequence else [] -%}
    {%- set names = queries | map(attribute='name') | list -%}
    {%- set chosen = queries | selectattr('name', 'equalto', name) | list if name is not none else queries -%}
    {%- if chosen | length != 1 -%}
        {%- do problems.append(veil._must_be('query', "one of the queries that `dp.queries` declares: " ~ (names | join(", ") or "none"), name)
            ~ (veil._nearest(name, names) if name is string else "")) -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set declared = chosen[0] -%}
    {%- for argument, given, written in [
        ('sensitivity', sensitivity, declared.get('l1') or declared.get('l2') or declared.get('linf')), ('share', share, declared.get('share')),
    ] if given is not none and given | string != written | string -%}
        {%- do problems.append("`" ~ argument ~ "` is " ~ given ~ ", and `dp.queries` declares " ~ (written if written is not none else "none")
            ~ " for `" ~ declared.name ~ "`: the policy is what is paid for") -%}
    {%- endfor -%}
    {%- do return(declared) -%}
{% endmacro %}

{#- The mechanisms of this model by query, with the scales that the ledger will reserve. Asking draws and spends nothing. -#}
{% macro _mechanisms() %}
    {%- do veil._require_udf('dp_noise', 'veil_noise_plan') -%}
    {%- set problems = [] -%}
    {%- set request = veil._budget_request(veil._declared_policy(model).dp, problems) -%}
    {%- set answer = fromjson(run_query("select veil_noise_plan(" ~ veil._literal(tojson(request)) ~ ")").rows[0][0]) -%}
    {%- if problems + answer.problems -%}
        {%- do veil._fail('dp_noise', problems + answer.problems, "model `" ~ model.name ~ "`") -%}
    {%- endif -%}
    {%- set mechanisms = {} -%}
    {%- for one in answer.queries -%}
        {%- do mechanisms.update({one.query: one}) -%}
    {%- endfor -%}
    {%- do return(mechanisms) -%}
{% endmacro %}
