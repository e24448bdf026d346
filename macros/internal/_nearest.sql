{#- "; did you mean `x`?" for the known word that shares the most letter pairs with the given one, or "". -#}

{% macro _nearest(word, known) %}
    {%- set given = veil._letter_pairs(word) -%}
    {%- set best = namespace(word=none, score=0.4) -%}
    {%- for candidate in known -%}
        {%- set pairs = veil._letter_pairs(candidate) -%}
        {%- set shared = namespace(count=0) -%}
        {%- for pair in given if pair in pairs -%}
            {%- set shared.count = shared.count + 1 -%}
        {%- endfor -%}
        {%- set score = 2 * shared.count / (given | length + pairs | length) -%}
        {%- if score > best.score -%}
            {%- set best.word = candidate -%}
            {%- set best.score = score -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return("; did you mean `" ~ best.word ~ "`?" if best.word is not none else "") -%}
{% endmacro %}

{% macro _letter_pairs(word) %}
    {%- set padded = '^' ~ (word | string | lower) ~ '$' -%}
    {%- set pairs = [] -%}
    {%- for i in range(padded | length - 1) -%}
        {%- do pairs.append(padded[i:i + 2]) -%}
    {%- endfor -%}
    {%- do return(pairs) -%}
{% endmacro %}
