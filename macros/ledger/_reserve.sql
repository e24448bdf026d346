{#- What a release does with its budget: reserve before anything private is read, settle before anything is published, and
    keep the table as it is while its public rule says so. -#}

{#- Whether the table stays as it is; then nothing private is read. Decided by the rule, the policy and the SQL, never by
    the data: that it did not change would be an answer about it. -#}
{% macro _kept(policy, existing, target) %}
    {%- if flags.EMPTY -%}
        {%- do veil._kept_empty(existing, target, policy) -%}
        {%- do return(true) -%}
    {%- elif policy.dp is none -%}
        {%- do return(false) -%}
    {%- endif -%}
    {%- set asked = veil._spending(model, policy) -%}
    {%- set state = veil._door('release', 'veil_refresh_due', asked.last, "model `" ~ model.name ~ "`") -%}
    {%- if state.due or existing is none -%}
        {%- do return(false) -%}
    {%- endif -%}
    {%- do veil._keep(existing, state.why) -%}
    {%- do return(true) -%}
{% endmacro %}

{% macro _keep(relation, why) %}
    {% call noop_statement('main', 'kept, 0 spent', 'KEPT', 0) %}{% endcall %}
    {%- do log("veil: kept " ~ relation ~ ", 0 spent (" ~ why ~ ")", info=true) -%}
{% endmacro %}

{#- Under --empty nothing is read, spent or replaced: a missing table is made with its columns and no rows. -#}
{% macro _kept_empty(existing, target, policy) %}
    {%- if existing is not none -%}
        {%- do veil._keep(existing, '--empty') -%}
    {%- else -%}
        {% call statement('main') -%}
            create table {{ target }} as (
                {{ sql }}
            ) with no data
        {%- endcall %}
        {%- do veil._drop_helpers(target, policy) -%}
        {%- do adapter.commit() -%}
    {%- endif -%}
{% endmacro %}

{#- Debit the budgets, or stop. The candidate's SQL is bound first, so that a mistake in it costs nothing. -#}
{% macro _reserve(policy) %}
    {%- if policy.dp is none -%}
        {%- do return({'budgets': [], 'seeded': false}) -%}
    {%- endif -%}
    {%- set subject = "model `" ~ model.name ~ "`" -%}
    {%- set asked = veil._spending(model, policy) -%}
    {%- do veil._drawn_once(asked.request, subject) -%}
    {%- set built = run_query("describe " ~ sql).columns['column_name'].values() | map('lower') | list -%}
    {%- do veil._check_nobody_named(policy, built, subject) -%}
    {%- if run_query("select count(*) from duckdb_databases() where database_name = " ~ veil._literal(target.database) ~ " and path is null").rows[0][0] -%}
        {%- do veil._fail('release', ["a ledger in memory forgets what was spent: set `path` of the profile to a file"], subject) -%}
    {%- endif -%}
    {%- set answer = veil._door('release', 'veil_reserve', dict(asked, release_id=veil._release_id()), subject) -%}
    {%- do return({'budgets': asked.budgets, 'seeded': answer.seeded}) -%}
{% endmacro %}

{#- Of a release written by hand: no unit and no identifier of its input beside the noise. Where noise is drawn for each
    person, a row is a person, and what names it is the author's to choose. -#}
{% macro _check_nobody_named(policy, built, subject) %}
    {%- set per_person = policy.dp.get('queries', []) | selectattr('mechanism', 'in', ['planar_laplace', 'randomized_response']) | list -%}
    {%- if 'queries' not in policy.dp or per_person -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set named = [] -%}
    {%- for column in policy.columns if column.role in ('unit', 'identifier') and column.name | lower in built -%}
        {%- do named.append(column.name) -%}
    {%- endfor -%}
    {%- if named -%}
        {%- do veil._fail('release', ["`" ~ named | join("`, `") ~ "` is a unit or an identifier of its input and leaves beside the noise: "
            ~ "select it in no released column"], subject) -%}
    {%- endif -%}
{% endmacro %}

{% macro _settle(policy) %}
    {%- if policy.dp is not none -%}
        {%- do veil._door('release', 'veil_settle', {'release_id': veil._release_id()}, "model `" ~ model.name ~ "`") -%}
    {%- endif -%}
{% endmacro %}

{#- What a model asks of its budgets, for the door and for the plan. -#}
{% macro _spending(node, policy) %}
    {%- set problems = [] -%}
    {%- set declared = veil._declared_policy(node).dp -%}
    {%- set budgets = veil._budgets_of(node, problems) -%}
    {%- if declared.get('budget') is none -%}
        {%- do problems.append("`dp.budget` is missing: the budget that pays, one of `veil__budgets`"
            ~ (", here " ~ budgets | join(", ") if budgets else "")) -%}
    {%- elif declared.budget not in veil._budgets() -%}
        {%- do problems.append("nobody declared the budget `" ~ declared.budget ~ "`: add it to `veil__budgets`"
            ~ veil._nearest(declared.budget, veil._budgets().keys() | list)) -%}
    {%- elif declared.budget not in budgets -%}
        {%- do problems.append("the budget `" ~ declared.budget ~ "` guards nothing that this model reads. Guarded by: "
            ~ (budgets | join(", ") or "none")) -%}
    {%- endif -%}
    {%- set names = policy.columns | map(attribute='name') | map('lower') | list -%}
    {%- for budget in budgets if policy.dp.get('unit') -%}
        {%- set protected = veil._budgets()[budget].get('unit') | string | lower -%}
        {%- if protected in names and protected != policy.dp.unit | lower -%}
            {%- do problems.append("the budget `" ~ budget ~ "` protects `" ~ protected ~ "`, and the rows of each `" ~ policy.dp.unit
                ~ "` are what is bounded. Give `" ~ protected ~ "` the role `unit`") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set request = veil._budget_request(policy.dp, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('release', problems, "model `" ~ node.name ~ "`") -%}
    {%- endif -%}
    {%- set hash = veil._dp_hash(node, policy) -%}
    {%- set last = veil._last_release(node) -%}
    {%- do return({
        'model': node.unique_id,
        'budgets': budgets,
        'disjoint': veil._proven_disjoint(budgets),
        'request': request,
        'consumer': declared.get('consumer') or policy.purpose | default([], true) | first | default(none),
        'block': declared.block | string if declared.get('block') is not none else none,
        'policy_hash': hash,
        'last': {
            'release_id': none if last is none else last.release_id,
            'refresh': declared.get('refresh') or veil._budgets()[declared.budget].get('refresh'),
            'policy_hash': hash,
        },
    }) -%}
{% endmacro %}

{#- The mechanisms asked for: written by hand as `queries`, or derived from `measures`. -#}
{% macro _budget_request(dp, problems) %}
    {%- if 'queries' not in dp -%}
        {%- do return(veil._dp_request(dp)) -%}
    {%- endif -%}
    {%- do veil._mapping(dp, 'dp', problems, ['budget', 'epsilon', 'delta', 'mechanism', 'queries', 'consumer', 'block', 'refresh', 'unit']) -%}
    {%- set request = {} -%}
    {%- for key in ['epsilon', 'delta', 'mechanism', 'queries'] if dp.get(key) is not none -%}
        {%- do request.update({key: dp[key]}) -%}
    {%- endfor -%}
    {%- do return(request) -%}
{% endmacro %}

{#- All that a release says of itself: its dp policy, the declared columns that bound it, and its SQL as written. When it
    is made again, and who is counted for it, are no part of what it says. -#}
{% macro _dp_hash(node, policy) %}
    {%- set declared = {} -%}
    {%- for key, value in veil._declared_policy(node).dp.items() if key not in ['refresh', 'consumer'] -%}
        {%- do declared.update({key: value}) -%}
    {%- endfor -%}
    {%- set columns = {} -%}
    {%- for column in policy.columns -%}
        {%- do columns.update({column.name: [column.role, column.get('domain'), column.get('bounds')]}) -%}
    {%- endfor -%}
    {%- set written = [declared, columns] -%}
    {#- YAML may hold what JSON has no word for, such as a date. -#}
    {%- do return(local_md5((tojson(written, sort_keys=true) or written | string) ~ node.raw_code)) -%}
{% endmacro %}

{#- Every query that is paid for is drawn in one place of the SQL, and nothing else is. -#}
{% macro _drawn_once(request, subject) %}
    {%- set code = modules.re.sub("(?s)('(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|--[^\\n]*|/\\*.*?\\*/", "\\1", sql) -%}
    {%- set kinds = "veil_(?:laplace|gaussian|exponential|randomized_response|geo_planar_laplace(?:_sticky)?)" -%}
    {%- set drawn = modules.re.findall(kinds ~ "\\(\\s*'" ~ veil._release_id() ~ "'\\s*,\\s*'(\\w+)'", code) -%}
    {%- set problems = [] -%}
    {%- if modules.re.findall("(?i)" ~ kinds ~ "\\b", code) | length != drawn | length -%}
        {%- do problems.append("its SQL calls a noise function by hand: draw with `veil.dp_noise` alone") -%}
    {%- endif -%}
    {%- if modules.re.search("(?i)\\bnot\\s+materialized\\b", code) -%}
        {%- do problems.append("`not materialized` would draw again at every read of the CTE: write `as materialized`") -%}
    {%- endif -%}
    {%- if not drawn -%}
        {%- do problems.append("its SQL draws no noise, so what it releases is exact") -%}
    {%- endif -%}
    {%- for query in request.queries if query is mapping and query.get('mechanism') != 'threshold' and drawn.count(query.name) != 1 -%}
        {%- do problems.append("query `" ~ query.name ~ "` is drawn in " ~ drawn.count(query.name)
            ~ " places of its SQL, and its policy pays for one. " ~ ("Remove it from `dp.queries`, or draw it" if drawn.count(query.name) == 0
            else "Draw it once in a CTE and read that, or declare a query for each")) -%}
    {%- endfor -%}
    {%- if problems -%}
        {%- do veil._fail('release', problems, subject) -%}
    {%- endif -%}
{% endmacro %}
