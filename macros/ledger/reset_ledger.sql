{#- Begin a new chain where the old one was lost, with what its exported head knows carried over as spent. -#}

{% macro reset_ledger(because) %}
    {%- if execute -%}
        {%- do veil._say(veil._door('reset_ledger', 'veil_reset_ledger', {'because': because}).lines) -%}
    {%- endif -%}
{% endmacro %}
