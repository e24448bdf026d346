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
    {%- do adapter.dispatch('publish', 'veil')(audience, path, format, results) -%}
{% endmacro %}

{#- Whether the run that ends released a table: `results` are those of an on-run-end hook. -#}
{% macro _released_any(results) %}
    {%- for result in results if result.status == 'success' and result.node.config.materialized == 'release' -%}
        {%- do return(true) -%}
    {%- endfor -%}
    {%- do return(false) -%}
{% endmacro %}

{% macro default__publish(audience, path, format, results) %}
    {%- do veil._fail('publish', ["writes DuckDB and Parquet files from DuckDB alone. On " ~ target.type
        ~ ", grant the audience the schema of the released tables instead"]) -%}
{% endmacro %}

{% macro duckdb__publish(audience, path, format, results) %}
    {%- do veil._require_udf('publish', 'veil_publish') -%}
    {%- set releases = veil._releases_of(audience) -%}
    {%- set problems = veil._tests_not_passed(releases, results or []) -%}
    {%- set tables = [] -%}
    {%- for release in releases -%}
        {%- do tables.append(veil._publication_table(release)) -%}
    {%- endfor -%}
    {%- do tables.append(veil._publication_records(releases)) -%}
    {%- do problems.extend(veil._names_twice(tables)) -%}
    {%- if problems -%}
        {%- do veil._fail('publish', problems) -%}
    {%- endif -%}
    {%- do veil._warn_of_links(releases) -%}
    {%- do run_query("select veil_publish(" ~ veil._literal(path) ~ ", " ~ veil._literal(format) ~ ", "
        ~ veil._literal(tojson(tables)) ~ ")") -%}
    {%- do log("veil: published to " ~ path ~ " for the audience " ~ audience ~ ": "
        ~ releases | map(attribute='name') | join(", "), info=true) -%}
{% endmacro %}

{#- Data tests of a published table, or of anything made from it, that this run did not pass. A test that was skipped counts
    where the run made the table anew: nothing else has tested it yet. -#}
{% macro _tests_not_passed(releases, results) %}
    {%- set published = releases | map(attribute='node') | map(attribute='unique_id') | list -%}
    {%- set made = [] -%}
    {%- for result in results if result.status == 'success' and result.node.unique_id in published -%}
        {%- do made.append(result.node.unique_id) -%}
    {%- endfor -%}
    {%- set problems = [] -%}
    {%- for result in results if result.node.resource_type == 'test' and result.status not in ('pass', 'warn') -%}
        {%- set tested = veil._upstream(result.node) | select('in', made if result.status == 'skipped' else published) | list -%}
        {%- if tested -%}
            {%- set names = releases | selectattr('node.unique_id', 'in', tested) | map(attribute='name') | join("`, `") -%}
            {%- do problems.append("the test `" ~ result.node.name ~ "` of `" ~ names ~ "` "
                ~ {'fail': "failed", 'skipped': "was skipped"}.get(result.status | string, "stopped with an error")
                ~ ". The last publication stays. Mend what it found and build again: `dbt build --select " ~ names | replace("`, `", " ") ~ "`") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(problems) -%}
{% endmacro %}

{#- The ids of all nodes that a node depends on, however far away. -#}
{% macro _upstream(node) %}
    {%- set found = node.depends_on.nodes | list -%}
    {#- The list grows while it is read. -#}
    {%- for unique_id in found if unique_id in graph.nodes -%}
        {%- for further in graph.nodes[unique_id].depends_on.nodes or [] if further not in found -%}
            {%- do found.append(further) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(found) -%}
{% endmacro %}

{#- A publication has no databases: two tables that only their databases tell apart would be one. -#}
{% macro _names_twice(tables) %}
    {%- set names = [] -%}
    {%- set problems = [] -%}
    {%- for table in tables -%}
        {%- set name = (table.schema ~ '.' ~ table.name) | lower -%}
        {%- if name in names -%}
            {%- do problems.append("a publication would have two tables called `" ~ name
                ~ "`. Give one of the models another `alias` or `schema`, or another audience") -%}
        {%- endif -%}
        {%- do names.append(name) -%}
    {%- endfor -%}
    {%- do return(problems) -%}
{% endmacro %}

{#- Each table was measured alone. One mask of one domain gives a person the same value in all of them. -#}
{% macro _warn_of_links(releases) %}
    {%- set domains = {} -%}
    {%- for release in releases -%}
        {%- for mask in (fromjson(release.masking or '{}').get('masks') or {}).values()
                if mask.kind in ('pseudonym', 'token', 'fpe', 'fake') and mask.get('domain') -%}
            {%- set names = domains.setdefault(mask.domain, []) -%}
            {%- do names.append(release.name) if release.name not in names -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for domain, names in domains.items() if names | length > 1 -%}
        {%- do exceptions.warn("veil.publish(): `" ~ names | join("`, `") ~ "` carry pseudonyms of the same domain `" ~ domain
            ~ "`: joined on them they give a finer table than any that was measured. Drop the pseudonym from all but one, "
            ~ "or give each table a domain of its own") -%}
    {%- endfor -%}
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
    {#- Built again, a noisy table stays as it stands until its refresh is due. -#}
    {%- set anew = again if release.budget is none else ". Drop it and build it again, which spends its budget again" -%}
    {%- if release.audience != audience -%}
        {%- do problems.append("`" ~ node.name ~ "` was released to `" ~ release.audience ~ "` and its YAML now says `" ~ audience ~ "`" ~ anew) -%}
    {%- elif veil._policy_changed(node, release) -%}
        {%- do problems.append("the policy of `" ~ node.name ~ "` was changed since its release" ~ again) -%}
    {%- endif -%}
    {%- if not veil._is_table(table) or (release.relation | replace('"', '') | lower) != (table | string | replace('"', '') | lower) -%}
        {%- do problems.append("`" ~ node.name ~ "` is no table, or not the one that was released" ~ anew) -%}
    {%- else -%}
        {%- set found = run_query(veil._row_count_sql(table)).rows[0][0] -%}
        {%- if found != release.rows_out -%}
            {%- do problems.append("`" ~ node.name ~ "` has " ~ found ~ " rows and " ~ release.rows_out
                ~ " were released: it was changed since" ~ anew) -%}
        {%- elif release.get('content_hash') is none -%}
            {%- do problems.append("the release of `" ~ node.name ~ "` was recorded without a fingerprint of its rows, so it cannot be told "
                ~ "whether the table is still what was measured" ~ anew) -%}
        {%- elif veil._content_hash(table) != release.content_hash -%}
            {%- do problems.append("`" ~ node.name ~ "` has other columns or values than were released: it was changed since" ~ anew) -%}
        {%- endif -%}
    {%- endif -%}
    {%- for mark in ['seeded', 'unsafe'] if release.get(mark) -%}
        {%- do problems.append("the release of `" ~ node.name ~ "` is marked " ~ mark
            ~ ": its noise can be drawn again by whoever knows the seed" ~ again ~ " without a seed") -%}
    {%- endfor -%}
    {%- do return(problems) -%}
{% endmacro %}

{#- Whether a build would make another release than the one that stands. What a differentially private table promises is in
    its ledger, which knows whether it is due. -#}
{% macro _policy_changed(node, release) %}
    {%- set policy = veil.policy(node=node) -%}
    {%- if policy.hash == release.policy_hash -%}
        {%- do return(false) -%}
    {%- elif policy.dp is none -%}
        {%- do return(true) -%}
    {%- endif -%}
    {%- do return(veil._door('publish', 'veil_refresh_due', veil._spending(node, policy).last, "model `" ~ node.name ~ "`").due) -%}
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

{#- Each database has a `veil.releases` of its own. -#}
{% macro _publication_records_sql(releases) -%}
{% for database in releases | map(attribute='node') | map(attribute='database') | unique -%}
{{ "union all" if not loop.first }}
select
    {%- for name in veil._published_record_columns() %}
    records.{{ name }},
    {%- endfor %}
    {%- for name in veil._published_counts() %}
    case when records.budget is null then records.{{ name }} end as {{ name }}{{ "," if not loop.last }}
    {%- endfor %}
from {{ veil._releases_relation(database) }} as records
where records.release_id in (
    {%- for release in releases %}
    {{ veil._literal(release.release_id) }}{{ "," if not loop.last }}
    {%- endfor %}
)
{% endfor -%}
order by relation
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
