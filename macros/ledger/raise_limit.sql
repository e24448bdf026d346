{#- Record the terms that `veil__budgets` now has for a budget as its limit, with who, when and why. -#}

{% macro raise_limit(budget, because) %}
    {%- if execute -%}
        {%- do veil._say(veil._door('raise_limit', 'veil_raise_limit', {'budget': budget, 'because': because}).lines) -%}
    {%- endif -%}
{% endmacro %}
