{#- Resolve the releases that a crash, a kill or a failed build left open: they stay charged, or are refunded where the
    budget says `on_failure: refund`. -#}

{% macro recover(because, release_id=none) %}
    {%- if execute -%}
        {%- do veil._say(veil._door('recover', 'veil_recover', {'because': because, 'release_id': release_id}).lines) -%}
    {%- endif -%}
{% endmacro %}
