{#- A hierarchy, read and checked: what every other macro knows of it. It maps a value and a level to a label; level 0
    is the value, the top level is '*'. All its problems are reported together, before a row is read. -#}

{% macro hierarchy(name_or_mapping) %}
    {%- set problems = [] -%}
    {%- set checked = veil._hierarchy(name_or_mapping, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('hierarchy', problems, checked.subject) -%}
    {%- endif -%}
    {%- do return(checked) -%}
{% endmacro %}

{#- The kinds: the keys each understands, how it is checked, and how it labels a value. This is the only list of them.
    `check(spec, problems)` returns what the kind needs to know of itself, with `top_level` (none while it is unknown).
    `label(value, checked, level)` returns {guards, branches, otherwise} of the CASE that `generalize` writes, for a
    level between 1 and the one below the top. `types` are the families of column types it labels; none stands for any. -#}
{% macro _hierarchy_kinds() %}
    {%- do return({
        'intervals': {
            'keys': ['widths', 'range', 'cuts', 'open_below', 'open_above', 'whole'],
            'check': veil._check_intervals, 'label': veil._label_intervals, 'types': ['number'],
        },
        'prefix': {
            'keys': ['keep', 'width', 'fill'],
            'check': veil._check_prefix, 'label': veil._label_prefix, 'types': ['text', 'integer'],
        },
        'dates': {
            'keys': ['levels'],
            'check': veil._check_dates, 'label': veil._label_dates, 'types': ['date'],
        },
        'tree': {
            'keys': ['tree'],
            'check': veil._check_tree, 'label': veil._label_tree, 'types': [],
        },
        'lookup': {
            'keys': ['relation', 'columns'],
            'check': veil._check_lookup, 'label': veil._label_lookup, 'types': [],
        },
        'top_bottom': {
            'keys': ['bottom', 'top'],
            'check': veil._check_top_bottom, 'label': veil._label_top_bottom, 'types': ['number'],
        },
        'rounding': {
            'keys': ['to'],
            'check': veil._check_rounding, 'label': veil._label_rounding, 'types': ['number'],
        },
        'merge_rare': {
            'keys': ['relation', 'column', 'minimum', 'unit', 'other', 'too_few'],
            'check': veil._check_merge_rare, 'label': veil._label_lookup, 'types': [],
        },
        'merge_extremes': {
            'keys': ['relation', 'column', 'minimum', 'unit', 'ends', 'too_few'],
            'check': veil._check_merge_extremes, 'label': veil._label_lookup, 'types': ['number'],
        },
        'cells': {
            'keys': ['system', 'resolution', 'levels'],
            'check': veil._check_cells, 'label': veil._label_cells, 'types': ['text'],
        },
        'suppression': {
            'keys': [],
            'check': veil._check_suppression, 'label': none, 'types': [],
        },
    }) -%}
{% endmacro %}

{#- As `hierarchy`, but adds what is wrong to `problems`. None stands for a column that can only be kept or suppressed. -#}
{% macro _hierarchy(name_or_mapping, problems) %}
    {#- What was checked carries a macro, which no YAML can hold. -#}
    {%- if name_or_mapping is mapping and name_or_mapping.get('checked_by') is callable -%}
        {%- do return(name_or_mapping) -%}
    {%- endif -%}
    {%- set declared = veil._setting('hierarchies') -%}
    {%- set name = name_or_mapping if name_or_mapping is string else none -%}
    {%- set subject = "hierarchy `" ~ name ~ "`" if name is not none else "the hierarchy written in place" -%}
    {%- set checked = {'name': name, 'subject': subject, 'kind': none, 'top_level': none, 'checked_by': veil.hierarchy} -%}
    {%- if name_or_mapping is none -%}
        {%- set spec = {'kind': 'suppression'} -%}
    {%- elif name is none -%}
        {%- set spec = name_or_mapping -%}
    {%- elif declared is not mapping or name not in declared -%}
        {%- do problems.append("it is not declared under `vars: veil__hierarchies`"
            ~ (veil._nearest(name, declared.keys()) if declared is mapping else "")) -%}
        {%- do return(checked) -%}
    {%- else -%}
        {%- set spec = declared[name] -%}
    {%- endif -%}
    {%- if spec is not mapping -%}
        {%- do problems.append(veil._must_be('hierarchy', "a name or a mapping with `kind`", spec)) -%}
        {%- do return(checked) -%}
    {%- endif -%}
    {%- set kinds = veil._hierarchy_kinds() -%}
    {%- set kind = veil._choice(spec.get('kind'), 'kind', problems, kinds.keys() | list) -%}
    {%- if kind is none -%}
        {%- do return(checked) -%}
    {%- endif -%}
    {%- do veil._mapping(spec, subject, problems, ['kind'] + kinds[kind]['keys']) -%}
    {%- do checked.update({'kind': kind}) -%}
    {%- do checked.update(kinds[kind]['check'](spec, problems)) -%}
    {%- do return(checked) -%}
{% endmacro %}

{% macro _check_suppression(spec, problems) %}
    {%- do return({'top_level': 1}) -%}
{% endmacro %}

{#- Adds to `problems` that a column of this type cannot have such a hierarchy, where the type is known: a message of its
    own before a row is read, instead of the engine's. `data_type` is as the engine writes it, or none. -#}
{% macro _check_hierarchy_type(checked, data_type, where, problems) %}
    {%- set wanted = veil._hierarchy_kinds()[checked.kind]['types'] if checked.kind is not none else [] -%}
    {%- set family = veil._type_family(data_type) -%}
    {%- if not wanted or family is none -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set head = "`" ~ where ~ "` is " ~ data_type ~ ", and " ~ checked.subject ~ " is of kind `" ~ checked.kind ~ "`" -%}
    {%- if family not in wanted and not (family == 'integer' and 'number' in wanted) -%}
        {%- do problems.append(head ~ ", which labels " ~ wanted | join(" or ") ~ " columns. Cast it in the staging model") -%}
    {%- elif checked.kind == 'prefix' and family == 'integer' and checked.width is none -%}
        {%- do problems.append(head ~ ": its leading zeros are lost. Read it as text where it enters (for a seed, `column_types`), "
            ~ "or declare `width` in the hierarchy") -%}
    {%- endif -%}
{% endmacro %}

{% macro _type_family(data_type) %}
    {%- set name = (data_type or '').lower().split('(')[0].split(' ')[0] -%}
    {%- set families = {
        'text': ['varchar', 'char', 'character', 'text', 'string', 'bpchar', 'nvarchar'],
        'integer': ['tinyint', 'smallint', 'integer', 'int', 'bigint', 'hugeint', 'utinyint', 'usmallint', 'uinteger', 'ubigint',
            'uhugeint', 'int64', 'byteint', 'long', 'short', 'byte'],
        'number': ['decimal', 'numeric', 'bignumeric', 'number', 'double', 'float', 'float64', 'real'],
        'date': ['date', 'datetime', 'timestamp', 'timestamp_s', 'timestamp_ms', 'timestamp_ns', 'timestamp_ntz', 'timestamp_ltz',
            'timestamp_tz', 'timestamptz'],
        'other': ['boolean', 'bool', 'time', 'interval', 'uuid', 'blob', 'json'],
    } -%}
    {%- for family, names in families.items() if name in names and not data_type.endswith(']') -%}
        {%- do return(family) -%}
    {%- endfor -%}
    {%- do return(none) -%}
{% endmacro %}

{#- What stands where a hierarchy has no label and the caller wants to count such rows. No label may be called so. -#}
{% macro _unmapped_label() %}
    {%- do return('<unmapped>') -%}
{% endmacro %}

{#- Labels that mean something else already. -#}
{% macro _check_label(label, problems) %}
    {%- if label in ('*', veil._unmapped_label()) or not label | trim -%}
        {%- do problems.append("a label below the top level must not be '*', '" ~ veil._unmapped_label() ~ "' or empty. Got: '" ~ label ~ "'") -%}
    {%- endif -%}
{% endmacro %}
