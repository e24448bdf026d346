{#- Read the whole ledger: every row's hash, every link, and the exported head. -#}

{% macro verify_ledger() %}
    {%- if execute -%}
        {%- do veil._say(veil._door('verify_ledger', 'veil_verify_ledger', {}).lines) -%}
    {%- endif -%}
{% endmacro %}
