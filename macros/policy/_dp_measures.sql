{#- The figures of a differentially private release. A figure is made of parts: each part is one mechanism, with its weight
    in the figure's budget and `linf`, the most that one person changes it by in one group. -#}

{% macro _dp_measures(declared, plan, columns, problems, node) %}
    {%- set measures = [] -%}
    {%- set given = declared.get('measures') -%}
    {%- if given is none or given is string or given is mapping or given is not sequence or not given -%}
        {%- do problems.append("`dp.measures` must be a list with at least one figure, for example `- {name: patients, kind: count_units}`. Got: "
            ~ (given if given is not none else "none")) -%}
        {%- do return([]) -%}
    {%- endif -%}
    {%- for one in given -%}
        {%- do measures.append(veil._dp_measure(one, 'dp.measures[' ~ loop.index0 ~ ']', plan, columns, problems, node)) -%}
    {%- endfor -%}
    {%- set taken = plan.group_by | map('lower') | list -%}
    {%- for measure in measures if measure.name -%}
        {%- set output = veil._dp_output_columns(measure) | map('lower') | list -%}
        {%- for column in (output | select('in', taken) | list)[:1] -%}
            {%- do problems.append("the measure `" ~ measure.name ~ "` gives a column `" ~ column ~ "`, which is there already") -%}
        {%- endfor -%}
        {%- do taken.extend(output) -%}
    {%- endfor -%}
    {%- do return(measures) -%}
{% endmacro %}

{#- What each kind of figure takes besides `name`, `kind` and `share`. -#}
{% macro _dp_kinds() %}
    {%- do return({
        'count_units': ['clip'],
        'count': ['column', 'max_rows_per_group', 'clip'],
        'sum': ['column', 'bounds', 'bounds_per', 'grid', 'max_rows_per_group', 'clip'],
        'mean': ['column', 'bounds', 'grid', 'max_rows_per_group'],
        'variance': ['column', 'bounds', 'grid', 'max_rows_per_group'],
        'stddev': ['column', 'bounds', 'grid', 'max_rows_per_group'],
        'quantile': ['column', 'q', 'candidates', 'method', 'max_rows_per_group'],
        'mode': ['column', 'candidates'],
        'top_k': ['column', 'k', 'candidates'],
        'histogram': ['column', 'candidates', 'max_rows_per_group'],
    }) -%}
{% endmacro %}

{% macro _dp_measure(given, where, plan, columns, problems, node) %}
    {%- set declared = veil._mapping(given, where, problems) -%}
    {%- set kinds = veil._dp_kinds() -%}
    {%- set name = veil._text(declared.name, where ~ '.name', problems) -%}
    {%- set where = "dp.measures." ~ name if name else where -%}
    {%- set kind = veil._choice(declared.kind, where ~ '.kind', problems, kinds.keys() | list) -%}
    {%- set measure = {'name': name, 'kind': kind, 'hidden': false, 'parts': [], 'column': declared.get('column'), 'clip': none, 'share': none} -%}
    {%- if name and not modules.re.fullmatch('[A-Za-z_][A-Za-z0-9_]*', name) -%}
        {%- do problems.append(veil._must_be(where ~ '.name', "letters, digits and underscores", name)) -%}
    {%- elif name and (name | lower).startswith('veil_') -%}
        {%- do problems.append("`" ~ where ~ "`: names that start with `veil_` are kept for the steps of the query") -%}
    {%- endif -%}
    {%- if declared.get('share') is not none -%}
        {%- set share = veil._number(declared.share, where ~ '.share', problems) -%}
        {%- if share is not none and not 0 < share <= 1 -%}
            {%- do problems.append(veil._must_be(where ~ '.share', "above 0 and at most 1", declared.share)) -%}
        {%- endif -%}
        {%- do measure.update({'share': share}) -%}
    {%- endif -%}
    {%- if kind is none -%}
        {%- do return(measure) -%}
    {%- endif -%}
    {%- set allowed = kinds[kind] -%}
    {%- do veil._mapping(declared, where, problems, ['name', 'kind', 'share'] + allowed) -%}
    {%- if 'column' in allowed and (kind != 'count' or measure.column is not none) -%}
        {%- do veil._dp_column(measure, where, plan, columns, problems) -%}
    {%- endif -%}
    {%- if 'max_rows_per_group' in allowed and declared.get('bounds_per') != 'group' -%}
        {%- do measure.update({'rows': veil._dp_rows(declared, where, plan, problems)}) -%}
    {%- endif -%}
    {%- if 'bounds' in allowed -%}
        {%- do veil._dp_bounds(measure, declared, where, columns, problems) -%}
    {%- endif -%}
    {%- if 'candidates' in allowed -%}
        {%- do measure.update({'candidates': veil._dp_candidates(measure, declared, where, columns, problems, node)}) -%}
    {%- endif -%}
    {%- if declared.get('clip') is not none -%}
        {%- do measure.update({'clip': veil._dp_clip(declared.clip, where ~ '.clip', problems)}) -%}
    {%- endif -%}
    {%- do veil._dp_parts(measure, declared, where, problems) -%}
    {%- do return(measure) -%}
{% endmacro %}

{% macro _dp_column(measure, where, plan, columns, problems) %}
    {%- set names = columns | map(attribute='name') | list -%}
    {%- set numeric = measure.kind in ('sum', 'mean', 'variance', 'stddev', 'quantile') -%}
    {%- if measure.column is none -%}
        {%- do problems.append("`" ~ where ~ ".column` is missing: the column that `" ~ measure.kind ~ "` is taken of") -%}
    {%- elif measure.column not in names -%}
        {%- do problems.append("`" ~ where ~ ".column` names `" ~ measure.column ~ "`, which is not a column of the input" ~ veil._nearest(measure.column | string, names)) -%}
    {%- else -%}
        {%- set column = columns | selectattr('name', 'equalto', measure.column) | first -%}
        {%- if measure.column == plan.unit -%}
            {%- do problems.append("`" ~ where ~ ".column` is the unit; count people with `kind: count_units`") -%}
        {%- elif numeric and column.get('data_type') and not veil._is_numeric_type(column.data_type) -%}
            {%- do problems.append("`" ~ where ~ ".column` must be numeric for `" ~ measure.kind ~ "`. `" ~ measure.column ~ "` is " ~ column.data_type) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}

{% macro _is_numeric_type(data_type) %}
    {%- set bare = (data_type | lower).split('(')[0] | trim -%}
    {%- do return(bare in ('tinyint', 'smallint', 'integer', 'int', 'bigint', 'hugeint', 'utinyint', 'usmallint', 'uinteger', 'ubigint', 'uhugeint',
        'float', 'real', 'double', 'double precision', 'decimal', 'numeric', 'number', 'int64', 'float64', 'bignumeric')) -%}
{% endmacro %}

{% macro _dp_rows(declared, where, plan, problems) %}
    {%- set rows = declared.get('max_rows_per_group', plan.max_rows_per_group) -%}
    {%- if rows is none -%}
        {%- do problems.append("`" ~ where ~ ".max_rows_per_group` is missing: how many rows of one person count in one group, for example 1. "
            ~ "It may also stand once, as `dp.max_rows_per_group`") -%}
        {%- do return(1) -%}
    {%- endif -%}
    {%- do return(veil._integer(rows, where ~ '.max_rows_per_group', problems, 1, 1000000) or 1) -%}
{% endmacro %}

{#- Public bounds, of the measure or of the column's policy, and the grid on which values become whole numbers. -#}
{% macro _dp_bounds(measure, declared, where, columns, problems) %}
    {%- set column = columns | selectattr('name', 'equalto', measure.column) | first | default({}) -%}
    {%- set given = declared.get('bounds', column.get('bounds')) -%}
    {%- set before = problems | length -%}
    {%- if given is none -%}
        {%- do problems.append("`" ~ where ~ ".bounds` is missing: without public bounds one person's effect has no limit. Write `bounds: [lower, upper]` "
            ~ "from what is known of the column, not from its data") -%}
    {%- endif -%}
    {%- set bounds = veil._dp_range(given, where ~ '.bounds', problems) if given is not none else none -%}
    {%- set per = veil._choice(declared.get('bounds_per', 'row'), where ~ '.bounds_per', problems, ['row', 'group']) -%}
    {%- if per == 'group' and measure.kind == 'sum' and declared.get('max_rows_per_group') is not none -%}
        {%- do problems.append("`" ~ where ~ ".max_rows_per_group` has no effect beside `bounds_per: group`: the person's total in the group is clamped") -%}
    {%- endif -%}
    {%- set grid = none -%}
    {%- if bounds is not none and declared.get('grid') is not none -%}
        {%- set grid = veil._number(declared.grid, where ~ '.grid', problems) -%}
        {%- if grid is not none and not 0 < grid <= bounds[1] - bounds[0] -%}
            {%- do problems.append(veil._must_be(where ~ '.grid', "above 0 and at most the width of the bounds", declared.grid)) -%}
        {%- elif grid is not none and (bounds[1] - bounds[0]) / grid > 1e19 -%}
            {%- do problems.append(veil._must_be(where ~ '.grid', "at least 1e-19 of the width of the bounds", declared.grid)) -%}
        {%- elif grid is not none and (veil._off_grid(bounds[0], grid) or veil._off_grid(bounds[1], grid)) -%}
            {%- do problems.append("`" ~ where ~ ".bounds` must be multiples of the grid " ~ grid ~ ". Got: " ~ bounds) -%}
        {%- endif -%}
    {%- elif bounds is not none -%}
        {%- set grid = veil._default_grid(bounds) -%}
    {%- endif -%}
    {%- do measure.update({'bounds': bounds, 'bounds_per': per, 'grid': grid if problems | length == before else none}) -%}
{% endmacro %}

{% macro _dp_range(given, name, problems) %}
    {%- if given is string or given is mapping or given is not sequence or given | length != 2 -%}
        {%- do problems.append(veil._must_be(name, "[lower, upper]", given)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set lower = veil._number(given[0], name ~ '[0]', problems, -1e19, 1e19) -%}
    {%- set upper = veil._number(given[1], name ~ '[1]', problems, -1e19, 1e19) -%}
    {%- if lower is none or upper is none -%}
        {%- do return(none) -%}
    {%- elif lower >= upper -%}
        {%- do problems.append("`" ~ name ~ "` must rise, or the figure would tell how many rows there are. Got: [" ~ lower ~ ", " ~ upper ~ "]") -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return([lower, upper]) -%}
{% endmacro %}

{% macro _off_grid(value, grid) %}
    {%- set steps = value / grid -%}
    {%- set off = steps - steps | round -%}
    {%- do return(off > 1e-6 or off < -1e-6) -%}
{% endmacro %}

{#- A millionth of the bounds' width, rounded down to a power of ten: finer than any noise that could be wanted. -#}
{% macro _default_grid(bounds) %}
    {%- set found = namespace(power=none) -%}
    {%- set width = bounds[1] - bounds[0] -%}
    {%- for power in range(19, -330, -1) if found.power is none -%}
        {%- if found.power is none and 10.0 ** power <= width -%}
            {%- set found.power = power - 6 -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(10 ** found.power if found.power >= 0 else 10.0 ** found.power) -%}
{% endmacro %}

{% macro _dp_clip(given, name, problems) %}
    {%- if given is string or given is mapping or given is not sequence or given | length != 2 -%}
        {%- do problems.append(veil._must_be(name, "[lower, upper], either of which may be null", given)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set lower = veil._number(given[0], name ~ '[0]', problems) if given[0] is not none else none -%}
    {%- set upper = veil._number(given[1], name ~ '[1]', problems) if given[1] is not none else none -%}
    {%- do return([lower, upper]) -%}
{% endmacro %}

{#- The public values a quantile, a mode or a histogram may take: a range [from, to, step], a list, the policy's domain, or
    a public relation with a column of the measure's name for it. -#}
{% macro _dp_candidates(measure, declared, where, columns, problems, node) %}
    {%- set name = where ~ '.candidates' -%}
    {%- set given = declared.get('candidates') -%}
    {%- set column = columns | selectattr('name', 'equalto', measure.column) | first | default({}) -%}
    {%- set given = column.get('domain') if given == 'domain' or (given is none and column.get('domain')) else given -%}
    {%- if given is none -%}
        {%- do problems.append("`" ~ name ~ "` is missing: the public values that the figure may take, which must not come from the data. "
            ~ ("Write a range [from, to, step] or `{values: […]}`" if measure.kind == 'quantile' else "Write a list, `domain`, or `ref('…')`")) -%}
        {%- do return(none) -%}
    {%- elif given is string and measure.kind != 'quantile' -%}
        {%- do return({'kind': 'relation', 'node': veil._public_node(given, name, problems, node)}) -%}
    {%- elif measure.kind != 'quantile' -%}
        {%- do return({'kind': 'list', 'values': veil._dp_values(given, name, problems)}) -%}
    {%- elif given is mapping -%}
        {%- set values = [] -%}
        {%- for value in veil._dp_values(given.get('values'), name ~ '.values', problems) -%}
            {%- do values.append(veil._number(value, name ~ '.values[' ~ loop.index0 ~ ']', problems)) -%}
        {%- endfor -%}
        {%- do return({'kind': 'list', 'values': values if none in values else values | sort}) -%}
    {%- elif given is string or given is not sequence or given | length != 3 -%}
        {%- do problems.append(veil._must_be(name, "a range [from, to, step] or `{values: […]}`", given)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set numbers = [] -%}
    {%- for value in given -%}
        {%- do numbers.append(veil._number(value, name ~ '[' ~ loop.index0 ~ ']', problems)) -%}
    {%- endfor -%}
    {%- if none not in numbers and (numbers[0] >= numbers[1] or not 0 < numbers[2] <= numbers[1] - numbers[0] or (numbers[1] - numbers[0]) / numbers[2] > 100000) -%}
        {%- do problems.append("`" ~ name ~ "` must rise from the first to the second in at most 100000 steps. Got: " ~ given) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return({'kind': 'range', 'from': numbers[0], 'to': numbers[1], 'step': numbers[2]}) -%}
{% endmacro %}

{#- The mechanisms of one figure. `linf` of a part on the grid is filled in by _dp_steps, once epsilon is divided. -#}
{% macro _dp_parts(measure, declared, where, problems) %}
    {%- set name = measure.name -%}
    {%- set rows = measure.get('rows', 1) -%}
    {%- set parts = [] -%}
    {%- if measure.kind in ('count_units', 'count') -%}
        {%- do parts.append({'name': name, 'weight': 1, 'linf': rows}) -%}
    {%- elif measure.kind == 'sum' -%}
        {%- do parts.append({'name': name, 'weight': 1, 'grid': 'value'}) -%}
    {%- elif measure.kind == 'mean' -%}
        {%- do parts.append({'name': name ~ '__count', 'weight': 0.5, 'linf': rows}) -%}
        {%- do parts.append({'name': name ~ '__sum', 'weight': 0.5, 'grid': 'offset'}) -%}
    {%- elif measure.kind in ('variance', 'stddev') -%}
        {%- do parts.append({'name': name ~ '__count', 'weight': 1 / 3, 'linf': rows}) -%}
        {%- do parts.append({'name': name ~ '__sum', 'weight': 1 / 3, 'grid': 'offset'}) -%}
        {%- do parts.append({'name': name ~ '__squares', 'weight': 1 / 3, 'grid': 'square'}) -%}
    {%- elif measure.kind == 'quantile' -%}
        {%- do veil._dp_quantile_parts(measure, declared, where, parts, problems) -%}
    {%- elif measure.kind == 'mode' -%}
        {%- do parts.append({'name': name, 'weight': 1, 'linf': 1, 'mechanism': 'exponential', 'monotone': true}) -%}
    {%- elif measure.kind == 'top_k' -%}
        {%- set k = veil._integer(declared.k, where ~ '.k', problems, 1, 100) or 1 -%}
        {%- set listed = (measure.candidates or {}).get('values') -%}
        {%- if listed and k > listed | length -%}
            {%- do problems.append("`" ~ where ~ ".k` is " ~ k ~ ", and there are " ~ listed | length ~ " candidates") -%}
        {%- endif -%}
        {%- do measure.update({'k': k}) -%}
        {%- for place in range(1, k + 1) -%}
            {%- do parts.append({'name': name ~ '_' ~ place, 'weight': 1 / k, 'linf': 1, 'mechanism': 'exponential', 'monotone': true}) -%}
        {%- endfor -%}
    {%- elif measure.kind == 'histogram' -%}
        {%- do parts.append({'name': name, 'weight': 1, 'linf': 1, 'bins': rows}) -%}
    {%- endif -%}
    {%- do measure.update({'parts': parts}) -%}
{% endmacro %}

{#- The exponential mechanism gives one quantile a time, and its interval takes two draws more: half of the budget goes to
    the values and a quarter to either end. A noisy histogram of the candidates gives them all at one price. -#}
{% macro _dp_quantile_parts(measure, declared, where, parts, problems) %}
    {%- set given = declared.get('q') -%}
    {%- set listed = given is not string and given is not mapping and given is sequence -%}
    {%- set quantiles = [] -%}
    {%- for value in (given if listed else [given]) -%}
        {%- set q = veil._number(value, where ~ '.q', problems) -%}
        {%- if q is not none and not 0 < q < 1 -%}
            {%- do problems.append(veil._must_be(where ~ '.q', "between 0 and 1, both excluded", value)) -%}
        {%- elif q is not none and not 1e-6 <= (q * 1000000) | round / 1000000 < 1 -%}
            {%- do problems.append(veil._must_be(where ~ '.q', "given to at most six digits", value)) -%}
        {%- elif q is not none -%}
            {%- set digits = (("%.6f" % q).rstrip('0') | length) - 2 -%}
            {%- set whole = 10 ** digits -%}
            {%- set label = ("%.6f" % (q * 100)).rstrip('0').rstrip('.') | replace('.', '_') -%}
            {%- do quantiles.append({'name': measure.name ~ '_p' ~ label if listed else measure.name,
                'below': (q * whole) | round | int, 'above': whole - (q * whole) | round | int}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if listed and not quantiles -%}
        {%- do problems.append(veil._must_be(where ~ '.q', "a number between 0 and 1, or a list of them", given)) -%}
    {%- endif -%}
    {%- set method = veil._choice(declared.get('method', 'exponential'), where ~ '.method', problems, ['exponential', 'histogram']) -%}
    {%- do measure.update({'quantiles': quantiles, 'method': method}) -%}
    {%- if method == 'histogram' -%}
        {%- do parts.append({'name': measure.name, 'weight': 1, 'linf': measure.rows}) -%}
    {%- else -%}
        {%- for one in quantiles -%}
            {%- for role, weight in [('', 0.5), ('_lo95', 0.25), ('_hi95', 0.25)] -%}
                {%- do parts.append({'name': one.name ~ role, 'weight': weight / quantiles | length, 'linf': measure.rows * [one.below, one.above] | max,
                    'mechanism': 'exponential', 'monotone': false}) -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}

{#- The bounds in whole steps of the grid. A step that is far finer than the noise is doubled until the noise fits 64 bits:
    the scale stays within 2^50 steps, so no sum wraps and no draw is cut off, whatever the bounds. -#}
{% macro _dp_steps(measure) %}
    {%- set found = namespace(grid=measure.grid, done=false) -%}
    {%- set rows = measure.get('rows', 1) -%}
    {%- for attempt in range(200) if not found.done -%}
        {%- set lower = veil._grid_floor(measure.bounds[0], found.grid) -%}
        {%- set upper = -veil._grid_floor(-measure.bounds[1], found.grid) -%}
        {%- set width = upper - lower -%}
        {%- set largest = namespace(scale=0) -%}
        {%- for part in measure.parts -%}
            {%- if part.grid is defined -%}
                {%- set most = {'value': [-lower, lower, -upper, upper] | max, 'offset': width, 'square': width * width}[part.grid] -%}
                {%- do part.update({'linf': most * rows}) -%}
            {%- endif -%}
            {%- set largest.scale = [largest.scale, part.linf * part.l0 / part.epsilon] | max -%}
        {%- endfor -%}
        {%- do measure.update({'grid': found.grid, 'lower_steps': lower, 'upper_steps': upper}) -%}
        {%- if largest.scale <= 2 ** 50 -%}
            {%- set found.done = true -%}
        {%- else -%}
            {%- set found.grid = found.grid * 2 -%}
        {%- endif -%}
    {%- endfor -%}
{% endmacro %}

{% macro _grid_floor(value, grid) %}
    {%- if value is integer and grid == 1 -%}
        {%- do return(value) -%}
    {%- endif -%}
    {%- set steps = value / grid -%}
    {%- set nearest = steps | round | int -%}
    {%- set off = steps - nearest -%}
    {%- do return(nearest if -1e-6 < off < 1e-6 else steps | round(0, 'floor') | int) -%}
{% endmacro %}

{#- The columns that a measure gives, in order. -#}
{% macro _dp_output_columns(measure) %}
    {%- set figures = [] -%}
    {%- if measure.kind == 'quantile' -%}
        {%- do figures.extend(measure.quantiles | map(attribute='name')) -%}
    {%- elif measure.kind == 'top_k' -%}
        {%- do figures.extend(measure.parts | map(attribute='name')) -%}
    {%- elif not measure.hidden -%}
        {%- do figures.append(measure.name) -%}
    {%- endif -%}
    {%- set output = [] -%}
    {%- for figure in figures -%}
        {%- do output.extend([figure, figure ~ '_scale', figure ~ '_lo95', figure ~ '_hi95']) -%}
    {%- endfor -%}
    {%- if measure.clip is not none -%}
        {%- do output.append(measure.name ~ '_clipped') -%}
    {%- endif -%}
    {%- do return(output) -%}
{% endmacro %}
