{#- The rows that a failing test returns: what is wrong, a class hash and sizes; the values only where asked for. -#}

{% macro _error_row(spec, source, problem, measured, threshold, class_level=true) -%}
    select
        {{ problem }} as {{ veil._helper_name('problem', veil._shown(spec)) }},
        {%- if class_level %}
        {{ veil._class_hash(spec, source) }} as {{ veil._helper_name('class_hash', veil._shown(spec)) }},
        {%- else %}
        cast(null as {{ dbt.type_string() }}) as {{ veil._helper_name('class_hash', veil._shown(spec)) }},
        {%- endif %}
        {{ source }}.people as {{ veil._helper_name('people', veil._shown(spec)) }},
        {{ source }}.row_count as {{ veil._helper_name('row_count', veil._shown(spec)) }},
        {{ veil._double(measured) }} as {{ veil._helper_name('measured', veil._shown(spec)) }},
        {{ veil._double(threshold) }} as {{ veil._helper_name('threshold', veil._shown(spec)) }}
        {%- for name in veil._shown(spec) %},
        {{ source ~ '.q_' ~ loop.index if class_level else 'null' }} as {{ veil._quote(name) }}
        {%- endfor %}
    from {{ source }}
{%- endmacro %}

{#- What every test refuses: NULL keys under `nulls: fail`, too much suppressed, no rows under `require_rows`. -#}
{% macro _common_errors(spec) -%}
    {%- if spec.nulls == 'fail' %}
    union all
    {{ veil._error_row(spec, 'classes', "'NULL in a quasi-identifier'", 'classes.people', 'null') }}
    where {{ veil._has_null(spec, 'classes') }}
    {%- endif %}
    {%- if spec.get('max_suppression') is not none %}
    union all
    {{ veil._error_row(
        spec, 'totals', "'larger share of people suppressed than max_suppression'",
        veil._ratio('totals.people_suppressed', 'totals.people'), spec.max_suppression, class_level=false
    ) }}
    where {{ veil._ratio('totals.people_suppressed', 'totals.people') }} > {{ spec.max_suppression }} + 1e-9
    {%- endif %}
    {%- if spec.require_rows %}
    union all
    {{ veil._error_row(spec, 'totals', "'no rows'", 'totals.row_count', 1, class_level=false) }}
    where totals.row_count = 0
    {%- endif %}
{%- endmacro %}

{#- Rows whose unit is NULL are nobody's: a class of them alone has no people to measure, and must not pass for that. -#}
{% macro _nobody_errors(spec) -%}
    {%- if spec.unit is not none %}
    union all
    {{ veil._error_row(spec, 'classes', "'nobody is known in the class: every unit is NULL'", 'classes.people', 1) }}
    where classes.people = 0
    {%- endif %}
{%- endmacro %}

{% macro _read_common(spec, require_rows, show_values, problems) %}
    {%- do spec.update({
        'require_rows': veil._boolean(require_rows, 'require_rows', problems),
        'show_values': veil._boolean(show_values, 'show_values', problems),
    }) -%}
{% endmacro %}

{% macro _shown(spec) %}
    {%- do return(spec.quasi_identifiers if spec.show_values else []) -%}
{% endmacro %}

{#- A test under a column is about that column too. -#}
{% macro _with_column(names, column_name) %}
    {%- if column_name is none -%}
        {%- do return(names) -%}
    {%- elif names is none -%}
        {%- do return([column_name]) -%}
    {%- endif -%}
    {%- set names = [names] if names is string else names -%}
    {%- if names is mapping or names is not sequence or column_name | lower in names | map('lower') | list -%}
        {%- do return(names) -%}
    {%- endif -%}
    {%- do return([column_name] + names | list) -%}
{% endmacro %}
