{#- What a measure is taken on, checked once: a mapping that every builder of SQL here reads.
    Columns are known inside by position (`q_1`, `s_1`, `unit_key`), so no name in the data can clash with a helper. -#}

{% macro _spec(
    relation, quasi_identifiers, problems, sensitive=[], unit=none, nulls='group', suppressed_marker=none, more=[],
    weight=none
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
    {%- set types = {} -%}
    {%- if not problems -%}
        {%- set types = veil._check_columns(relation, keys + sensitive + ([unit] if unit is not none else []) + more, problems) -%}
    {%- endif -%}
    {%- set positions = [] -%}
    {%- for _ in keys -%}
        {%- do positions.append("q_" ~ loop.index) -%}
    {%- endfor -%}
    {%- do return({
        'types': types,
        'positions': positions,
        'relation': relation,
        'quasi_identifiers': keys,
        'sensitive': sensitive,
        'unit': unit,
        'nulls': nulls,
        'marker': suppressed_marker,
        'weight': weight,
        'coarse': {},
    }) -%}
{% endmacro %}

{#- Each name must be a column. A missing one must never reach SQL bare: `user` would become the session's user.
    Returns the types of all columns, by name in lower case; empty where they cannot be known. -#}
{% macro _check_columns(relation, names, problems, what='column') %}
    {%- set types = {} -%}
    {%- set found = [] -%}
    {%- for column in veil._columns(relation) -%}
        {%- do found.append(column.name) -%}
        {%- do types.update({column.name | lower: column.dtype | lower}) -%}
    {%- endfor -%}
    {%- for name in names | unique if found and name | lower not in types -%}
        {%- do problems.append(what ~ " `" ~ name ~ "` not found" ~ veil._nearest(name, found)) -%}
    {%- endfor -%}
    {%- do return(types) -%}
{% endmacro %}

{#- The columns of a relation or of a query text; [] where they cannot be known: when parsing, of an ephemeral model, of
    a CTE of the query that is being written. -#}
{% macro _columns(relation) %}
    {%- if not execute -%}
        {%- do return([]) -%}
    {%- elif relation is string -%}
        {%- if '__dbt__cte__' in relation or modules.re.fullmatch('[A-Za-z_][A-Za-z_0-9]*', relation.strip()) -%}
            {%- do return([]) -%}
        {%- endif -%}
        {%- do return(get_column_schema_from_query("select source_rows.* from " ~ veil._from(relation))) -%}
    {%- elif relation.is_cte -%}
        {%- do return([]) -%}
    {%- endif -%}
    {%- do return(adapter.get_columns_in_relation(relation)) -%}
{% endmacro %}

{#- A sensitive column. NaN in it is a value that is missing, as NULL is. -#}
{% macro _sensitive(spec, name, alias) %}
    {%- set column = veil._quote(name, alias) -%}
    {%- if spec.types.get(name | lower) in ('double', 'float', 'real', 'double precision', 'float4', 'float8', 'float64') -%}
        {%- do return(adapter.dispatch('_not_nan', 'veil')(column) | trim) -%}
    {%- endif -%}
    {%- do return(column) -%}
{% endmacro %}

{% macro default___not_nan(column) -%}
nullif({{ column }}, {{ veil._double("'NaN'") }})
{%- endmacro %}

{% macro bigquery___not_nan(column) -%}
if(is_nan({{ column }}), null, {{ column }})
{%- endmacro %}

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

{#- A relation, or the text of one: a qualified name or a query. A relation object counts as a mapping in Jinja. -#}
{% macro _is_relation(value) %}
    {%- if value is string -%}
        {%- do return('.' in value or value.strip().startswith('(') or '__dbt__cte__' in value) -%}
    {%- endif -%}
    {%- do return(value is not none and value.identifier is defined and value.schema is defined) -%}
{% endmacro %}
