{#- dbt run-operation veil.detokenize --args '{tokens: [tok_…], domain: patients, reason: "request 17 of the person", to: answer.csv}'
    Writes the values to a new private file, and an audit row first. No value goes through SQL, a log or the terminal. -#}

{% macro detokenize(tokens, domain, reason, to) %}
    {%- set found = veil._reveal('detokenize', 'veil_detokenize', tokens, domain, reason, to) -%}
    {%- if execute -%}
        {%- do log("veil: " ~ found ~ " of " ~ (1 if tokens is string else tokens | length) ~ " values written to " ~ to, info=true) -%}
    {%- endif -%}
{% endmacro %}
