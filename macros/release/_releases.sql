{#- `veil.releases`, the append-only record of every release: created by macro, so that no full refresh can touch it. -#}

{% macro _releases_relation(database) %}
    {%- do return(api.Relation.create(database=database, schema=veil._setting('schema'), identifier='releases', type='table')) -%}
{% endmacro %}

{% macro _releases_columns() %}
    {%- do return({
        'release_id': dbt.type_string(),
        'model': dbt.type_string(),
        'relation': dbt.type_string(),
        'audience': dbt.type_string(),
        'released_at': dbt.type_timestamp(),
        'invocation_id': dbt.type_string(),
        'policy_hash': dbt.type_string(),
        'sql_hash': dbt.type_string(),
        'quasi_identifiers': dbt.type_string(),
        'levels': dbt.type_string(),
        'nulls': dbt.type_string(),
        'unit': dbt.type_string(),
        'people_in': dbt.type_bigint(),
        'people_out': dbt.type_bigint(),
        'rows_in': dbt.type_bigint(),
        'rows_out': dbt.type_bigint(),
        'classes': dbt.type_bigint(),
        'k_required': dbt.type_bigint(),
        'k_measured': dbt.type_bigint(),
        'suppressed_share': 'double precision' if target.type in ('duckdb', 'postgres') else dbt.type_float(),
        'measures': dbt.type_string(),
        'masking': dbt.type_string(),
        'exceptions': dbt.type_string(),
        'content_hash': dbt.type_string(),
        'budget': dbt.type_string(),
        'seeded': dbt.type_boolean(),
        'package_version': dbt.type_string(),
        'engine_version': dbt.type_string(),
    }) -%}
{% endmacro %}

{% macro _ensure_releases(database) %}
    {%- set releases = veil._releases_relation(database) -%}
    {%- do veil._create_once(releases, veil._releases_columns()) -%}
    {%- do return(releases) -%}
{% endmacro %}

{#- Create a bookkeeping table where it is missing, committed before the model's own transaction begins. Threads that
    arrive together must not write the catalog at once: where the plugin is loaded, one door lets them in one by one. -#}
{% macro _create_once(relation, columns) %}
    {%- set existing = adapter.get_relation(relation.database, relation.schema, relation.identifier) -%}
    {#- Whatever read the catalogue so far did so in a transaction that would not see what is created now. -#}
    {%- do adapter.commit() -%}
    {%- if existing is not none -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set definitions = [] -%}
    {%- for name, type in columns.items() -%}
        {%- do definitions.append(name ~ " " ~ type) -%}
    {%- endfor -%}
    {%- set schema = relation.include(identifier=false) -%}
    {%- for ddl in [
        "create schema if not exists " ~ schema,
        "create table if not exists " ~ relation ~ " (" ~ definitions | join(", ") ~ ")",
    ] -%}
        {%- do adapter.dispatch('_run_ddl', 'veil')(ddl) -%}
    {%- endfor -%}
{% endmacro %}

{% macro default___run_ddl(ddl) %}
    {%- do run_query(ddl) -%}
{% endmacro %}

{% macro duckdb___run_ddl(ddl) %}
    {%- if veil._is_registered('veil_run_ddl') -%}
        {%- do run_query("select veil_run_ddl(" ~ veil._literal(ddl) ~ ")") -%}
    {%- else -%}
        {%- do run_query(ddl) -%}
    {%- endif -%}
{% endmacro %}

{#- The id of the release that this invocation makes of this model: known when the SQL is compiled, before it is built. -#}
{% macro _release_id() %}
    {%- do return(local_md5(invocation_id ~ ':' ~ model.unique_id)) -%}
{% endmacro %}

{% macro _record_release(releases, target, measured, policy, paid) -%}
{%- set record = {
    'release_id': veil._release_id(),
    'model': model.unique_id,
    'relation': target | string,
    'audience': policy.audience,
    'invocation_id': invocation_id,
    'policy_hash': policy.hash,
    'sql_hash': local_md5(sql),
    'quasi_identifiers': tojson(policy.quasi_identifiers),
    'levels': tojson(policy.levels, sort_keys=true),
    'nulls': policy.nulls,
    'unit': policy.unit,
    'people_in': measured.people_in,
    'people_out': measured.people_out,
    'rows_in': measured.rows_in,
    'rows_out': measured.rows_out,
    'classes': measured.classes,
    'k_required': policy.k,
    'k_measured': measured.k,
    'suppressed_share': measured.suppressed_share,
    'measures': tojson(veil.measured_figures(policy, measured)),
    'masking': tojson(veil._release_masking(policy)),
    'exceptions': tojson(veil._exceptions(policy)),
    'content_hash': measured.content_hash,
    'budget': paid.budgets | join(", ") or none,
    'seeded': paid.seeded,
    'package_version': veil._version(),
} -%}
insert into {{ releases }} (
    released_at,
    engine_version,
    {{ record.keys() | join(",\n    ") }}
)
select
    -- never before an earlier record, whatever the clock says: the last one is the one that stands
    greatest(
        cast({{ veil._utc_now() }} as {{ dbt.type_timestamp() }}),
        coalesce((select max(released_at) from {{ releases }}), cast({{ veil._utc_now() }} as {{ dbt.type_timestamp() }}))
    ) as released_at,
    {{ veil._engine_version() }} as engine_version,
    {%- for name, value in record.items() %}
    cast({{ veil._literal(value) }} as {{ veil._releases_columns()[name] }}) as {{ name }}{{ "," if not loop.last }}
    {%- endfor %}
{%- endmacro %}

{#- The reasons that were written down for going below what is asked by default. -#}
{% macro _exceptions(policy) %}
    {%- set exceptions = {} -%}
    {%- for key in ['below_floor_because', 'linked_because'] if policy[key] is not none -%}
        {%- do exceptions.update({key: policy[key]}) -%}
    {%- endfor -%}
    {%- do return(exceptions) -%}
{% endmacro %}

{% macro _release_line(target, measured, policy) %}
    {%- if policy.dp is not none -%}
        {%- do return("veil: released " ~ target ~ ": " ~ measured.rows_out ~ " rows, epsilon " ~ policy.dp.epsilon ~ ", delta " ~ (policy.dp.delta or 0)
            ~ " of the budget `" ~ policy.dp.budget ~ "`") -%}
    {%- endif -%}
    {%- do return("veil: released " ~ target ~ ": " ~ measured.people_out ~ " of " ~ measured.people_in
        ~ (" people in " if policy.unit is not none else " rows in ")
        ~ measured.classes ~ " classes, smallest " ~ (measured.k if measured.k is not none else "none") ~ " (k " ~ policy.k ~ "), "
        ~ veil._percent(measured.suppressed_share) ~ " left out") -%}
{% endmacro %}
