{#- The first characters of a text code. A code whose length is not `width`, or that is shorter than what is kept, has no
    label. Numbers have lost their leading zeros: they are padded to a declared `width`, and refused without one. -#}

{% macro _check_prefix(spec, problems) %}
    {%- set found = problems | length -%}
    {%- set kept = [] -%}
    {%- for count in veil._list(spec.get('keep')) -%}
        {%- do kept.append(veil._integer(count, 'keep', problems, minimum=1)) -%}
    {%- endfor -%}
    {%- set width = veil._integer(spec.width, 'width', problems, minimum=2) if spec.get('width') is not none else none -%}
    {%- set fill = spec.get('fill', '*') -%}
    {%- if fill is not string or fill | length != 1 -%}
        {%- do problems.append(veil._must_be('fill', "one character", fill)) -%}
    {%- endif -%}
    {%- if not kept -%}
        {%- do problems.append("`keep` must list how many characters each level keeps, such as {keep: [4, 3], width: 5}") -%}
    {%- endif -%}
    {%- if problems | length > found -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- if width is not none and kept[0] >= width -%}
        {%- do problems.append(veil._must_be('keep', "less than `width`: level 0 is the whole code", spec.keep)) -%}
    {%- endif -%}
    {%- for i in range(1, kept | length) if kept[i] >= kept[i - 1] -%}
        {%- do problems.append("`keep` must fall from level to level. Got: " ~ kept[i] ~ " after " ~ kept[i - 1]) -%}
    {%- endfor -%}
    {%- do return({'kept': kept, 'width': width, 'fill': fill, 'top_level': kept | length + 1}) -%}
{% endmacro %}

{% macro _label_prefix(value, checked, level) %}
    {%- do return(adapter.dispatch('_label_prefix', 'veil')(value, checked, checked.kept[level - 1])) -%}
{% endmacro %}

{#- The type of the column is not known here, so nothing is padded: a code that lost its zeros is too short. -#}
{% macro default___label_prefix(value, checked, keep) %}
    {%- set code = "cast(" ~ value ~ " as " ~ dbt.type_string() ~ ")" -%}
    {%- set guard = "length(" ~ code ~ ") " ~ ("< " ~ keep if checked.width is none else "<> " ~ checked.width) -%}
    {%- set label = "substring(" ~ code ~ ", 1, " ~ keep ~ ") || " ~ veil._prefix_fill(checked, keep) -%}
    {%- do return({'guards': [guard], 'otherwise': label}) -%}
{% endmacro %}

{% macro duckdb___label_prefix(value, checked, keep) %}
    {%- set code = "cast(" ~ value ~ " as varchar)" -%}
    {%- if checked.width is none -%}
        {%- do return({
            'refusals': [["typeof(" ~ value ~ ") <> 'VARCHAR'",
                "is not text, so its leading zeros may be lost. Cast it to text where it enters, or declare `width` in the hierarchy"]],
            'guards': ["length(" ~ code ~ ") < " ~ keep],
            'otherwise': "left(" ~ code ~ ", " ~ keep ~ ") || " ~ veil._prefix_fill(checked, keep),
        }) -%}
    {%- endif -%}
    {%- set whole_numbers = ['TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'HUGEINT', 'UTINYINT', 'USMALLINT', 'UINTEGER', 'UBIGINT', 'UHUGEINT'] -%}
    {%- set padded = "lpad(" ~ code ~ ", " ~ checked.width ~ ", '0')" -%}
    {%- do return({
        'refusals': [["typeof(" ~ value ~ ") not in ('VARCHAR', '" ~ whole_numbers | join("', '") ~ "')",
            "is neither text nor a whole number. Cast it to text where it enters"]],
        'guards': [
            "length(" ~ code ~ ") > " ~ checked.width,
            "(typeof(" ~ value ~ ") = 'VARCHAR' and length(" ~ code ~ ") < " ~ checked.width ~ ")",
            "(typeof(" ~ value ~ ") <> 'VARCHAR' and " ~ code ~ " like '-%')",
        ],
        'otherwise': "left(" ~ padded ~ ", " ~ keep ~ ") || " ~ veil._prefix_fill(checked, keep),
    }) -%}
{% endmacro %}

{#- As many as were cut off where every code has one width, else one for "and so on". -#}
{% macro _prefix_fill(checked, keep) %}
    {%- do return(veil._literal(checked.fill * (checked.width - keep if checked.width is not none else 1))) -%}
{% endmacro %}
