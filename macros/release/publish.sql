{#- Write the released tables of one audience, with their release records and descriptions, into a new file that holds
    nothing else, and swap it in by an atomic rename: the door through which analysts get data. -#}

{% macro publish(audience=none, path=none, format='duckdb', results=none) %}
    {%- if not execute or (results is not none and not veil._released_any(results)) -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- do veil._choice(audience, 'audience', problems, veil._setting('audiences').keys() | list) -%}
    {%- do veil._text(path, 'path', problems) -%}
    {%- do veil._choice(format, 'format', problems, ['duckdb', 'parquet']) -%}
    {%- if problems -%}
        {%- do veil._fail('publish', problems) -%}
    {%- endif -%}
    {%- do adapter.dispatch('publish', 'veil')(audience, path, format) -%}
{% endmacro %}

{#- Whether the run that ends released a table: `results` are those of an on-run-end hook. -#}
{% macro _released_any(results) %}
    {%- for result in results if result.status == 'success' and result.node.config.materialized == 'release' -%}
        {%- do return(true) -%}
    {%- endfor -%}
    {%- do return(false) -%}
{% endmacro %}

{% macro default__publish(audience, path, format) %}
    {%- do veil._fail('publish', ["writes DuckDB and Parquet files from DuckDB alone. On " ~ target.type
        ~ ", grant the audience the schema of the released tables instead"]) -%}
{% endmacro %}

{% macro duckdb__publish(audience, path, format) %}
    {%- do veil._require_udf('publish', 'veil_publish') -%}
    {%- set releases = veil._releases_of(audience) -%}
    {%- set tables = [] -%}
    {%- for release in releases -%}
        {%- do tables.append(veil._publication_table(release)) -%}
    {%- endfor -%}
    {%- do tables.append(veil._publication_records(releases)) -%}
    {%- do run_query("select veil_publish(" ~ veil._literal(path) ~ ", " ~ veil._literal(format) ~ ", "
        ~ veil._literal(tojson(tables)) ~ ")") -%}
    {%- do log("veil: published to " ~ path ~ " for the audience " ~ audience ~ ": "
        ~ releases | map(attribute='name') | join(", "), info=true) -%}
{% endmacro %}

{#- The last release of every model of this project that was released to an audience, each still what its record says. -#}
{% macro _releases_of(audience) %}
    {%- set releases = [] -%}
    {%- set missing = [] -%}
    {%- set problems = [] -%}
    {%- for node in graph.nodes.values() | sort(attribute='unique_id') if node.resource_type == 'model' and node.config.materialized == 'release'
            and veil._declared_policy(node).get('audience') == audience -%}
        {%- set release = veil._last_release(node) -%}
        {%- if release is none -%}
            {%- do missing.append(node.name) -%}
        {%- else -%}
            {%- do problems.extend(veil._not_as_released(node, release, audience)) -%}
            {%- do releases.append(dict(release, name=node.name, node=node)) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if problems -%}
        {%- do veil._fail('publish', problems) -%}
    {%- elif not releases -%}
        {%- do veil._fail('publish', ["there is nothing to publish for the audience `" ~ audience ~ "`: "
            ~ ("build " ~ missing | join(", ") ~ " first, for example `dbt build --select " ~ missing | join(" ") ~ "`" if missing
            else "no model is `materialized: release` with `audience: " ~ audience ~ "`")]) -%}
    {%- elif missing -%}
        {%- do log("veil: not yet released and so not published: " ~ missing | join(", "), info=true) -%}
    {%- endif -%}
    {%- do return(releases) -%}
{% endmacro %}

{% macro _last_release(node) %}
    {%- set records = veil._releases_relation(node.database) -%}
    {%- if not veil._is_table(records) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set query -%}
        select releases.*
        from {{ records }} as releases
        where releases.model = {{ veil._literal(node.unique_id) }}
        order by releases.released_at desc
        limit 1
    {%- endset -%}
    {%- set table = run_query(query) -%}
    {%- if not table.rows -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set release = {} -%}
    {%- for name in table.column_names -%}
        {%- do release.update({name | lower: table.rows[0][name]}) -%}
    {%- endfor -%}
    {%- do return(release) -%}
{% endmacro %}

{#- Asked of the database: dbt's cache does not know of tables that macros make. -#}
{% macro _is_table(relation) %}
    {%- set query -%}
        select count(*)
        from information_schema.tables as present
        where present.table_catalog = {{ veil._literal(relation.database) }}
            and present.table_schema = {{ veil._literal(relation.schema) }}
            and present.table_name = {{ veil._literal(relation.identifier) }}
            and present.table_type = 'BASE TABLE'
    {%- endset -%}
    {%- do return(run_query(query).rows[0][0] == 1) -%}
{% endmacro %}

{#- Why the table as it stands is not what its last record describes, or not for this audience; an empty list if it is. -#}
{% macro _not_as_released(node, release, audience) %}
    {%- set problems = [] -%}
    {%- set table = veil._relation_of(node) -%}
    {%- set again = ". Build it again: `dbt build --select " ~ node.name ~ "`" -%}
    {%- if release.audience != audience -%}
        {%- do problems.append("`" ~ node.name ~ "` was released to `" ~ release.audience ~ "` and its YAML now says `" ~ audience ~ "`" ~ again) -%}
    {%- endif -%}
    {%- if not veil._is_table(table) or (release.relation | replace('"', '') | lower) != (table | string | replace('"', '') | lower) -%}
        {%- do problems.append("`" ~ node.name ~ "` is no table, or not the one that was released" ~ again) -%}
    {%- else -%}
        {%- set found = run_query(veil._row_count_sql(table)).rows[0][0] -%}
        {%- if found != release.rows_out -%}
            {%- do problems.append("`" ~ node.name ~ "` has " ~ found ~ " rows and " ~ release.rows_out
                ~ " were released: it was changed since" ~ again) -%}
        {%- endif -%}
    {%- endif -%}
    {%- for mark in ['seeded', 'unsafe'] if release.get(mark) -%}
        {%- do problems.append("the release of `" ~ node.name ~ "` is marked " ~ mark
            ~ ": its noise can be drawn again by whoever knows the seed" ~ again ~ " without a seed") -%}
    {%- endfor -%}
    {%- do return(problems) -%}
{% endmacro %}

{% macro _row_count_sql(table) -%}
select count(*) as row_count from {{ table }}
{%- endmacro %}

{#- A released table as the publication has it: same schema, name, columns and comments. -#}
{% macro _publication_table(release) %}
    {%- set node = release.node -%}
    {%- set relation = veil._relation_of(node) -%}
    {%- set built = adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
    {%- set descriptions = {} -%}
    {%- for name in built if veil._column_of(node, name).get('description') -%}
        {%- do descriptions.update({name: veil._column_of(node, name).description}) -%}
    {%- endfor -%}
    {%- do return({
        'schema': relation.schema,
        'name': relation.identifier,
        'query': veil._publication_sql(relation, built),
        'description': node.description or '',
        'columns': descriptions,
    }) -%}
{% endmacro %}

{% macro _publication_sql(relation, names) -%}
select
    {%- for name in names %}
    released.{{ veil._quote(name) }}{{ "," if not loop.last }}
    {%- endfor %}
from {{ relation }} as released
{%- endmacro %}

{#- The record of each published table, and of no other. -#}
{% macro _publication_records(releases) %}
    {%- do return({
        'schema': 'veil',
        'name': 'releases',
        'query': veil._publication_records_sql(releases),
        'description': 'Release records of the tables published here, written by veil.publish.',
        'columns': {},
    }) -%}
{% endmacro %}

{% macro _publication_records_sql(releases) -%}
select
    {%- for name in veil._published_record_columns() %}
    records.{{ name }},
    {%- endfor %}
    {%- for name in veil._published_counts() %}
    case when records.budget is null then records.{{ name }} end as {{ name }}{{ "," if not loop.last }}
    {%- endfor %}
from {{ veil._releases_relation(releases[0].node.database) }} as records
where records.release_id in (
    {%- for release in releases %}
    {{ veil._literal(release.release_id) }}{{ "," if not loop.last }}
    {%- endfor %}
)
order by records.relation
{%- endmacro %}

{#- What analysts learn of how a table was made. The names are listed, so that a column added to `veil.releases` stays in. -#}
{% macro _published_record_columns() %}
    {%- do return([
        'release_id', 'relation', 'audience', 'released_at', 'policy_hash', 'quasi_identifiers', 'levels', 'nulls',
        'k_required', 'budget', 'package_version', 'engine_version',
    ]) -%}
{% endmacro %}

{#- Counts of people. Those behind a differentially private table stay in: they are what its noise hides. -#}
{% macro _published_counts() %}
    {%- do return(['people_out', 'rows_out', 'classes', 'k_measured', 'suppressed_share', 'measures']) -%}
{% endmacro %}
