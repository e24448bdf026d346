{#- What a measure is taken on, checked once: a mapping that every builder of SQL here reads.
    Columns are known inside by position (`q_1`, `s_1`, `unit_key`), so no name in the data can clash with a helper. -#}

{% macro _spec(
    relation, quasi_identifiers, problems, sensitive=[], unit=none, nulls='group', suppressed_marker=none, more=[], weight=none
) %}
    {%- set keys = veil._names(quasi_identifiers, 'quasi_identifiers', problems) -%}
    {%- do veil._choice(nulls, 'nulls', problems, ['group', 'wildcard', 'fail']) -%}
    {%- if unit is not none -%}
        {%- do veil._text(unit, 'unit', problems) -%}
    {%- endif -%}
    {%- for name in keys if unit is string and name | lower == unit | lower -%}
        {%- do problems.append("`unit` is also a quasi-identifier: every class would be one person. Got: '" ~ unit ~ "'") -%}
    {%- endfor -%}
    {%- for name in sensitive if name | lower in keys | map('lower') | list -%}
        {%- do problems.append("a sensitive column cannot be a quasi-identifier as well. Got: '" ~ name ~ "'") -%}
    {%- endfor -%}
    {%- if suppressed_marker is not none and (suppressed_marker is mapping or suppressed_marker is boolean
            or (suppressed_marker is not string and suppressed_marker is not number)) -%}
        {%- do problems.append(veil._must_be('suppressed_marker', "a text", suppressed_marker)) -%}
    {%- endif -%}
    {%- if not problems -%}
        {%- do veil._check_columns(relation, keys + sensitive + ([unit] if unit is not none else []) + more, problems) -%}
    {%- endif -%}
    {%- do return({
        'relation': relation,
        'quasi_identifiers': keys,
        'sensitive': sensitive,
        'unit': unit,
        'nulls': nulls,
        'marker': suppressed_marker,
        'weight': weight,
    }) -%}
{% endmacro %}

{#- Each name must be a column. A missing one must never reach SQL bare: `user` would become the session's user. -#}
{% macro _check_columns(relation, names, problems) %}
    {%- set found = veil._column_names(relation) -%}
    {%- set folded = found | map('lower') | list -%}
    {%- for name in names | unique if found and name | lower not in folded -%}
        {%- do problems.append("column `" ~ name ~ "` not found" ~ veil._nearest(name, found)) -%}
    {%- endfor -%}
{% endmacro %}

{#- Names of the columns of a relation or of a query text; [] where they cannot be known (parsing, ephemeral models). -#}
{% macro _column_names(relation) %}
    {%- if not execute -%}
        {%- do return([]) -%}
    {%- endif -%}
    {%- if relation is string -%}
        {%- if '__dbt__cte__' in relation or modules.re.fullmatch('[A-Za-z_][A-Za-z_0-9]*', relation.strip()) -%}
            {%- do return([]) -%}
        {%- endif -%}
        {%- set columns = get_column_schema_from_query("select source_rows.* from " ~ veil._from(relation)) -%}
    {%- elif relation.is_cte -%}
        {%- do return([]) -%}
    {%- else -%}
        {%- set columns = adapter.get_columns_in_relation(relation) -%}
    {%- endif -%}
    {%- do return(columns | map(attribute='name') | list) -%}
{% endmacro %}

{#- The relation in a FROM clause, as `source_rows`. A test with `where` hands over text with an alias of its own. -#}
{% macro _from(relation, alias='source_rows') %}
    {%- if relation is not string -%}
        {%- do return(relation ~ " as " ~ alias) -%}
    {%- endif -%}
    {%- set text = relation.strip() -%}
    {%- if text.startswith('(') -%}
        {%- do return("(select * from " ~ text ~ ") as " ~ alias) -%}
    {%- elif text.split() | first | lower in ('select', 'with') -%}
        {%- do return("(" ~ text ~ ") as " ~ alias) -%}
    {%- endif -%}
    {%- do return(text ~ " as " ~ alias) -%}
{% endmacro %}

{#- A name for a helper column that no given column bears. -#}
{% macro _helper_name(name, taken) %}
    {%- set free = namespace(name=name) -%}
    {%- for _ in taken -%}
        {%- if free.name | lower in taken | map('lower') | list -%}
            {%- set free.name = free.name ~ '_' -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(free.name) -%}
{% endmacro %}
