{#- Move each point by planar Laplace noise: a report is geo-indistinguishable with `epsilon` a kilometre, and a person
    of T reports with T times that. A release is charged for it; its policy holds epsilon and the number of reports. -#}

{% macro geo_planar_laplace(
    relation, epsilon=none, x='lon', y='lat', max_reports=none, snap=1, query=none, unaccounted_because=none
) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- do veil._require_udf('geo_planar_laplace', 'veil_geo_planar_laplace') -%}
    {%- set problems = [] -%}
    {%- set paid = config.get('materialized') == 'release' -%}
    {%- set asked = veil._geo_reserved(relation, epsilon, max_reports, query, kwargs, problems) if paid
        else veil._geo_unaccounted(epsilon, max_reports, unaccounted_because, problems) -%}
    {%- set given = dict(kwargs, unit=asked.unit) if paid else kwargs -%}
    {%- set spec = veil._geo_spec('geo_planar_laplace', relation, x, y, given, problems, noise=true) -%}
    {%- set snap = veil._number(snap, 'snap', problems, minimum=0.001) -%}
    {%- do spec.update(asked) -%}
    {%- if paid and spec.area is none and spec.projection == 'auto' and not spec.crs.startswith('plane:') -%}
        {%- do problems.append("`area` is missing: without it the plane is chosen by everybody's points, which nobody pays for. "
            ~ "Declare a public one, such as `area=[west, south, east, north]`") -%}
    {%- endif -%}
    {%- if spec.reports is not none and spec.reports > 1 and spec.unit is none -%}
        {%- do problems.append("`max_reports` bounds the points of one person: name the column of the person in `unit`") -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('geo_planar_laplace', problems) -%}
    {%- endif -%}
    {%- do return(veil._geo_noise(spec, 'planar_laplace' if paid else 'planar_laplace_unaccounted', [asked.epsilon, snap])) -%}
{% endmacro %}

{#- Outside a release nothing is charged, which is for data that is public already: somebody has to say so. -#}
{% macro _geo_unaccounted(epsilon, max_reports, because, problems) %}
    {%- if because is none -%}
        {%- do problems.append("planar Laplace noise is charged to a budget: set `materialized: release`, and a policy with\n"
            ~ "      dp: {budget: …, epsilon: 20, queries: [{name: place, mechanism: planar_laplace, reports: 4}]}\n"
            ~ "    For points that are public anyway, say so with `unaccounted_because='…'`") -%}
    {%- else -%}
        {%- do veil._text(because, 'unaccounted_because', problems) -%}
    {%- endif -%}
    {%- do return({
        'epsilon': veil._number(epsilon, 'epsilon', problems, minimum=0.000001),
        'reports': 1 if max_reports is none else veil._integer(max_reports, 'max_reports', problems, minimum=1),
    }) -%}
{% endmacro %}

{#- What the release's policy reserves for its query. What the call says as well must agree with it. -#}
{% macro _geo_reserved(relation, epsilon, max_reports, query, given, problems) %}
    {%- set declared = veil._dp_query(query, none, none, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('geo_planar_laplace', problems) -%}
    {%- endif -%}
    {%- set mechanism = veil._mechanisms()[declared.name] -%}
    {%- if mechanism.kind != 'planar_laplace' -%}
        {%- do veil._fail('geo_planar_laplace', ["query `" ~ declared.name ~ "` of `dp.queries` must be `mechanism: planar_laplace`. Got: '"
            ~ mechanism.kind ~ "'"]) -%}
    {%- endif -%}
    {%- set policy = veil.policy(relation) -%}
    {%- set each = 1 / mechanism.scale -%}
    {%- if policy.unit is none -%}
        {%- do problems.append("no column of the input has the role `unit`: a budget pays for people, and nobody says who they are") -%}
    {%- elif given.get('unit') not in (none, policy.unit) -%}
        {%- do problems.append("`unit` is " ~ given.unit ~ ", and the policy's is " ~ policy.unit ~ ": leave it away") -%}
    {%- endif -%}
    {%- if epsilon is not none and veil._number(epsilon, 'epsilon', problems) is not none and (epsilon | float - each) | abs > 1e-9 * each -%}
        {%- do problems.append("`epsilon` is " ~ epsilon ~ " a kilometre and report, and `dp` pays for " ~ mechanism.epsilon ~ " over "
            ~ mechanism.l0 ~ " reports: leave it away, the policy is what is paid for") -%}
    {%- endif -%}
    {%- if max_reports is not none and max_reports | string != mechanism.l0 | string -%}
        {%- do problems.append("`max_reports` is " ~ max_reports ~ ", and `dp.queries` declares " ~ mechanism.l0 ~ ": leave it away") -%}
    {%- endif -%}
    {%- do return({'epsilon': each, 'reports': mechanism.l0, 'query': mechanism.query, 'unit': policy.unit}) -%}
{% endmacro %}
