{#- All measures of a table on one sheet, no value of it shown:
    dbt run-operation veil.profile --args '{relation: patients_released, quasi_identifiers: [zip, age], sensitive: [diagnosis]}' -#}

{% macro profile(relation, quasi_identifiers, sensitive=[], unit=none, nulls='group', suppressed_marker=none) %}
    {%- set problems = [] -%}
    {%- set columns = [] if not sensitive else veil._names(sensitive, 'sensitive', problems) -%}
    {%- set table = veil._find_relation(relation, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('profile', problems) -%}
    {%- endif -%}
    {%- set spec = veil._spec(table, quasi_identifiers, problems, columns, unit, nulls, suppressed_marker) -%}
    {%- set requests = veil._profile_requests(spec, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('profile', problems) -%}
    {%- endif -%}
    {%- set measured = veil._first_row(adapter.dispatch('measure_sql', 'veil')(spec, requests, {'sensitive': columns})) -%}
    {%- for line in veil._profile_lines(table, spec, requests, measured) -%}
        {%- do log(line, info=true) -%}
    {%- endfor -%}
{% endmacro %}

{#- A model, seed or snapshot by its name, a source as source.table, or any table as [database.]schema.table. -#}
{% macro _find_relation(name, problems) %}
    {%- if name is not string -%}
        {%- do return(name) -%}
    {%- endif -%}
    {%- set found = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type in ('model', 'seed', 'snapshot') and node.name == name -%}
        {%- do found.append(load_relation(veil._relation_of(node))) -%}
    {%- endfor -%}
    {%- for node in graph.sources.values() if node.source_name ~ '.' ~ node.name == name -%}
        {%- do found.append(load_relation(veil._relation_of(node))) -%}
    {%- endfor -%}
    {%- set parts = name.split('.') -%}
    {%- if not found and parts | length in (2, 3) -%}
        {%- do found.append(adapter.get_relation(
            database=parts[0] if parts | length == 3 else target.database, schema=parts[-2], identifier=parts[-1]
        )) -%}
    {%- endif -%}
    {%- if not found or found[0] is none -%}
        {%- do problems.append("there is no model, seed, source (`source.table`) or table (`schema.table`) `" ~ name
            ~ "` that is built") -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- do return(found[0]) -%}
{% endmacro %}

{% macro _profile_requests(spec, problems) %}
    {%- set requests = [] -%}
    {%- for column in spec.sensitive -%}
        {%- set wanted = [
            ['l', {'kind': 'distinct'}], ['l', {'kind': 'entropy'}], ['homogeneity', {'max_share': 0.8}], ['t', {}],
            ['beta', {}], ['beta', {'kind': 'enhanced'}], ['delta_disclosure', {}], ['posterior_shift', {}],
        ] -%}
        {%- if veil._is_number_type(spec.types.get(column | lower, '')) -%}
            {%- do wanted.append(['t', {'distance': 'ordered'}]) -%}
            {%- do wanted.append(['t', {'distance': 'numeric'}]) -%}
        {%- endif -%}
        {%- if spec.unit is not none -%}
            {%- do wanted.append(['person_level_gap', {}]) -%}
        {%- endif -%}
        {%- for measure, options in wanted -%}
            {%- do requests.append(veil._request(measure, column, options, problems, needs_threshold=false)) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(requests) -%}
{% endmacro %}

{% macro _is_number_type(type) %}
    {%- for start in ['int', 'bigint', 'smallint', 'tinyint', 'hugeint', 'uint', 'ubig', 'usmall', 'utiny', 'decimal', 'numeric',
            'number', 'double', 'float', 'real'] if type.startswith(start) -%}
        {%- do return(true) -%}
    {%- endfor -%}
    {%- do return(false) -%}
{% endmacro %}

{% macro _profile_lines(table, spec, requests, measured) %}
    {%- set counted = "people (`" ~ spec.unit ~ "`)" if spec.unit is not none else "rows, each taken for one person" -%}
    {%- set mean_risk = measured.classes / measured.people if measured.people else 0 -%}
    {%- set lines = [
        "veil: profile of " ~ table,
        "  classes over " ~ spec.quasi_identifiers | join(", ") ~ "; NULL: " ~ spec.nulls ~ "; counted: " ~ counted,
        "  rows " ~ measured.row_count ~ ", people " ~ measured.people ~ ", classes " ~ measured.classes,
        "  k " ~ ("no classes" if measured.k is none else measured.k) ~ ", unique people " ~ measured.unique_people
            ~ ", mean prosecutor risk " ~ veil._figure_text(mean_risk),
    ] -%}
    {%- for column in spec.sensitive -%}
        {%- do lines.append("  " ~ column ~ ", worst class:") -%}
        {%- for request in requests if request.column == column -%}
            {%- set n = requests.index(request) + 1 -%}
            {%- set figure = measured['measured_' ~ n] -%}
            {%- set name = veil._measure_label(request) | replace(" of `" ~ column ~ "`", "") -%}
            {%- do lines.append("    " ~ '%-33s ' | format(name) ~ veil._figure_text(none if figure is none else figure | float)
                ~ ("  (" ~ measured['failing_' ~ n] ~ " classes above " ~ request.threshold ~ ")" if request.threshold is not none else "")) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(lines) -%}
{% endmacro %}
