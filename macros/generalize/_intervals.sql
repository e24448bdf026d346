{#- Half-open bins [lower, upper) between literal cuts. A value belongs to the first bin whose upper cut it is below, so
    each value is in exactly one bin, and its label is true of it. NaN is below nothing. -#}

{% macro _check_intervals(spec, problems) %}
    {%- set open_below = veil._boolean(spec.get('open_below', false), 'open_below', problems) -%}
    {%- set open_above = veil._boolean(spec.get('open_above', false), 'open_above', problems) -%}
    {%- if ('widths' in spec) == ('cuts' in spec) -%}
        {%- do problems.append("give either `widths` with `range`, such as {widths: [5, 10], range: [0, 100]}, or `cuts`, such as {cuts: [0, 18, 65]}") -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set found = problems | length -%}
    {%- set cuts = veil._cuts_from_widths(spec, problems) if 'widths' in spec else veil._cuts_as_given(spec, problems) -%}
    {%- if problems | length > found -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- do veil._check_cuts(cuts.levels, cuts.scale, open_below, open_above, problems) -%}
    {%- set whole = veil._boolean(spec.get('whole', cuts.whole), 'whole', problems) -%}
    {%- if whole and cuts.scale > 0 -%}
        {%- do problems.append("`whole` is true, but not all cuts are whole numbers") -%}
    {%- endif -%}
    {%- if problems | length > found -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set levels = [] -%}
    {%- for level_cuts in cuts.levels -%}
        {%- set borders = ([none] if open_below else []) + level_cuts + ([none] if open_above else []) -%}
        {%- set bins = [] -%}
        {%- for i in range(borders | length - 1) -%}
            {%- do bins.append(veil._bin(borders[i], borders[i + 1], cuts.scale, whole)) -%}
        {%- endfor -%}
        {%- do levels.append(bins) -%}
    {%- endfor -%}
    {%- do return({'levels': levels, 'whole': whole, 'scale': cuts.scale, 'top_level': levels | length + 1}) -%}
{% endmacro %}

{% macro _cuts_from_widths(spec, problems) %}
    {%- set found = problems | length -%}
    {%- set widths = veil._list(spec.widths) -%}
    {%- set limits = veil._list(spec.get('range')) -%}
    {%- if not widths or limits | length != 2 -%}
        {%- do problems.append(veil._must_be('widths', "one number or more, with `range: [lowest, highest]` beside it", spec.widths)
            if not widths else veil._must_be('range', "[lowest, highest]; values outside are refused unless `open_below` or `open_above` is true", spec.get('range'))) -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set numbers = veil._scaled(widths + limits, 'widths` and `range', problems) -%}
    {%- if numbers.units | length != widths | length + 2 -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set lowest, highest = numbers.units[-2:] -%}
    {%- set steps = numbers.units[:-2] -%}
    {%- if lowest >= highest -%}
        {%- do problems.append(veil._must_be('range', "[lowest, highest] with lowest < highest", spec.range)) -%}
    {%- endif -%}
    {%- if steps | min <= 0 or (numbers.scale == 0 and steps[0] == 1) -%}
        {%- do problems.append(veil._must_be('widths', "above 0, and above 1 for whole numbers: level 0 is the value itself", spec.widths)) -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- for i in range(1, steps | length) if steps[i] <= steps[i - 1] or steps[i] % steps[i - 1] != 0 -%}
        {%- do problems.append("`widths` must each be a multiple of the one before, or the levels do not nest. Got: " ~ widths[i] ~ " after " ~ widths[i - 1]) -%}
    {%- endfor -%}
    {%- if (highest - lowest) // steps[0] > 1000 -%}
        {%- do problems.append("`widths` and `range` make more than 1000 bins; use wider bins, or `kind: rounding`") -%}
    {%- endif -%}
    {%- if problems | length > found -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- set levels = [] -%}
    {%- for step in steps -%}
        {%- do levels.append(range(lowest, highest, step) | list + [highest]) -%}
    {%- endfor -%}
    {%- do return({'levels': levels, 'scale': numbers.scale, 'whole': numbers.scale == 0}) -%}
{% endmacro %}

{#- One list of cuts is one level; a list of lists is a level each, finest first. -#}
{% macro _cuts_as_given(spec, problems) %}
    {%- set given = veil._list(spec.cuts) -%}
    {%- set nested = given | length > 0 and given[0] is sequence and given[0] is not string -%}
    {%- set lists = given if nested else [given] -%}
    {%- set flat = [] -%}
    {%- for cuts in lists -%}
        {%- do flat.extend(veil._list(cuts)) -%}
    {%- endfor -%}
    {%- set numbers = veil._scaled(flat, 'cuts', problems) -%}
    {%- set levels, position = [], namespace(start=0) -%}
    {%- for cuts in lists -%}
        {%- set count = veil._list(cuts) | length -%}
        {%- do levels.append(numbers.units[position.start:position.start + count]) -%}
        {%- set position.start = position.start + count -%}
    {%- endfor -%}
    {%- do return({'levels': levels, 'scale': numbers.scale, 'whole': false}) -%}
{% endmacro %}

{#- Rising cuts leave no gap, no overlap and no empty bin; cuts that are also cuts of the level below nest. -#}
{% macro _check_cuts(levels, scale, open_below, open_above, problems) %}
    {%- for cuts in levels -%}
        {%- set here = "`cuts` of level " ~ loop.index -%}
        {%- set below = levels[loop.index0 - 1] if not loop.first else none -%}
        {%- if cuts | length + (1 if open_below else 0) + (1 if open_above else 0) < 2 -%}
            {%- do problems.append(here ~ " make no bin: give two cuts or more") -%}
        {%- endif -%}
        {%- for i in range(1, cuts | length) if cuts[i] <= cuts[i - 1] -%}
            {%- do problems.append(here ~ " must rise, or bins are empty or overlap. Got: "
                ~ veil._decimal_text(cuts[i], scale) ~ " after " ~ veil._decimal_text(cuts[i - 1], scale)) -%}
        {%- endfor -%}
        {%- for cut in cuts if below is not none and cut not in below -%}
            {%- do problems.append(here ~ " must all be cuts of the level below, or the levels do not nest. Got: " ~ veil._decimal_text(cut, scale)) -%}
        {%- endfor -%}
        {%- if below and cuts and ((not open_below and cuts[0] != below[0]) or (not open_above and cuts[-1] != below[-1])) -%}
            {%- do problems.append(here ~ " must begin and end as those of the level below, or leave a gap; or set `open_below` or `open_above`") -%}
        {%- endif -%}
    {%- endfor -%}
{% endmacro %}

{% macro _bin(lower, upper, scale, whole) %}
    {%- set low = veil._decimal_text(lower, scale) if lower is not none else none -%}
    {%- set high = veil._decimal_text(upper, scale) if upper is not none else none -%}
    {%- if lower is none -%}
        {%- set label = '<' ~ high if whole else '(-inf,' ~ high ~ ')' -%}
    {%- elif upper is none -%}
        {%- set label = low ~ '+' if whole else '[' ~ low ~ ',inf)' -%}
    {%- elif not whole -%}
        {%- set label = '[' ~ low ~ ',' ~ high ~ ')' -%}
    {%- elif upper - lower == 1 -%}
        {%- set label = low -%}
    {%- else -%}
        {%- set label = low ~ (' to ' if lower < 0 else '-') ~ (upper - 1) -%}
    {%- endif -%}
    {%- do return({'lower': low, 'upper': high, 'label': label}) -%}
{% endmacro %}

{% macro _label_intervals(value, checked, level) %}
    {%- set bins = checked.levels[level - 1] -%}
    {%- set guards = [value ~ " <> floor(" ~ value ~ ")"] if checked.whole else [] -%}
    {%- if checked.scale > 0 -%}
        {%- do guards.append(veil._out_of_decimals(value, checked.scale)) -%}
    {%- endif -%}
    {%- do guards.append(value ~ (" <= -" ~ veil._infinity() if bins[0].lower is none else " < " ~ bins[0].lower)) -%}
    {%- set branches = [] -%}
    {%- for bin in bins -%}
        {%- do branches.append([value ~ " < " ~ (bin.upper if bin.upper is not none else veil._infinity()), veil._literal(bin.label)]) -%}
    {%- endfor -%}
    {%- do return({'guards': guards, 'branches': branches}) -%}
{% endmacro %}
