{#- Codes of cells that nest: each level is the coarser cell around the one below. Quadkeys and geohashes nest by their
    first characters, H3 cells by their parents (which hold about, not exactly, what their children do). -#}

{% macro _check_cells(spec, problems) %}
    {%- set found = problems | length -%}
    {%- set finest = {'h3': 15, 'quadkey': 30, 'geohash': 12} -%}
    {%- set system = veil._choice(spec.get('system'), 'system', problems, finest.keys() | list) -%}
    {%- set coarsest = 0 if system == 'h3' else 1 -%}
    {%- set resolution = veil._integer(spec.get('resolution'), 'resolution', problems, coarsest, finest.get(system, 30)) -%}
    {%- set levels = [] -%}
    {%- for level in veil._list(spec.get('levels')) -%}
        {%- do levels.append(veil._integer(level, 'levels', problems, minimum=coarsest)) -%}
    {%- endfor -%}
    {%- if not levels -%}
        {%- do problems.append("`levels` must list the coarser resolutions, such as {system: h3, resolution: 9, levels: [7, 5]}") -%}
    {%- endif -%}
    {%- if problems | length > found -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set falling = [resolution] + levels -%}
    {%- for i in range(1, falling | length) if falling[i] >= falling[i - 1] -%}
        {%- do problems.append("`levels` must fall from `resolution` on. Got: " ~ falling[i] ~ " after " ~ falling[i - 1]) -%}
    {%- endfor -%}
    {%- do return({'system': system, 'resolution': resolution, 'levels': levels, 'top_level': levels | length + 1}) -%}
{% endmacro %}

{% macro _label_cells(value, checked, level) %}
    {%- set coarser = checked.levels[level - 1] -%}
    {%- if checked.system == 'h3' -%}
        {%- do return({
            'guards': ["veil_geo_hex_resolution(" ~ value ~ ") <> " ~ checked.resolution],
            'otherwise': "veil_geo_hex_parent(" ~ value ~ ", " ~ coarser ~ ")",
        }) -%}
    {%- endif -%}
    {%- do return({
        'guards': ["length(" ~ value ~ ") <> " ~ checked.resolution],
        'otherwise': "substring(" ~ value ~ ", 1, " ~ coarser ~ ")",
    }) -%}
{% endmacro %}
