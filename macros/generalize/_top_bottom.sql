{#- Top and bottom coding: what is below `bottom` or not below `top` is told as such, what lies between stays. -#}

{% macro _check_top_bottom(spec, problems) %}
    {%- set bottoms = veil._list(spec.get('bottom')) -%}
    {%- set tops = veil._list(spec.get('top')) -%}
    {%- set found = problems | length -%}
    {%- set numbers = veil._scaled(bottoms + tops, 'bottom` and `top', problems) -%}
    {%- if not bottoms and not tops or (bottoms and tops and bottoms | length != tops | length) -%}
        {%- do problems.append("give `bottom`, `top` or both, one number a level, such as {bottom: 18, top: 90}") -%}
    {%- endif -%}
    {%- if problems | length > found -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set low, high = numbers.units[:bottoms | length], numbers.units[bottoms | length:] -%}
    {%- for i in range([low, high] | map('length') | max) -%}
        {%- if low and high and low[i] >= high[i] -%}
            {%- do problems.append("`bottom` must be below `top`. Got: " ~ bottoms[i] ~ " and " ~ tops[i]) -%}
        {%- endif -%}
        {%- if i > 0 and ((low and low[i] < low[i - 1]) or (high and high[i] > high[i - 1])) -%}
            {%- do problems.append("each level must reach further in than the one before, or the levels do not nest") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set levels = [] -%}
    {%- for i in range([low, high] | map('length') | max) -%}
        {%- do levels.append({
            'bottom': veil._decimal_text(low[i], numbers.scale) if low else none,
            'top': veil._decimal_text(high[i], numbers.scale) if high else none,
        }) -%}
    {%- endfor -%}
    {%- do return({'levels': levels, 'scale': numbers.scale, 'top_level': levels | length + 1}) -%}
{% endmacro %}

{% macro _label_top_bottom(value, checked, level) %}
    {%- set limits = checked.levels[level - 1] -%}
    {%- set branches = [] -%}
    {%- if limits.bottom is not none -%}
        {%- do branches.append([value ~ " < " ~ limits.bottom, veil._literal('<' ~ limits.bottom)]) -%}
    {%- endif -%}
    {%- if limits.top is not none -%}
        {%- do branches.append([value ~ " >= " ~ limits.top, veil._literal(limits.top ~ '+')]) -%}
    {%- endif -%}
    {%- do return({'guards': [veil._out_of_decimals(value, checked.scale)], 'branches': branches, 'otherwise': "cast(" ~ value ~ " as " ~ dbt.type_string() ~ ")"}) -%}
{% endmacro %}
