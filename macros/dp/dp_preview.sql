{#- Before anything is spent: what a release's `dp` policy would give on a public or synthetic relation of the same shape, or
    for groups of given sizes, at each epsilon, mechanism and `max_groups`. Reads the policy from the release's YAML; never
    the data of people. -#}

{% macro dp_preview(release, relation=none, sizes=none, epsilons=none, mechanisms=none, max_groups=none) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- do veil._require_udf('dp_preview', 'veil_dp_margin') -%}
    {%- set problems = [] -%}
    {%- set node = veil._dp_release_node(release, problems) -%}
    {%- if (relation is none) == (sizes is none) -%}
        {%- do problems.append("give `relation`, public or synthetic, or `sizes`, a list of people in a group: one of them") -%}
    {%- elif sizes is not none -%}
        {%- for size in veil._dp_values(sizes, 'sizes', problems) -%}
            {%- do veil._integer(size, 'sizes[' ~ loop.index0 ~ ']', problems, 1) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set synthetic = veil._node_of(relation, model) if relation is not none else {'columns': {}} -%}
    {%- set private = veil._unit_upstream(synthetic, []) -%}
    {%- if private is not none -%}
        {%- do problems.append("`relation` must be public or synthetic, and `" ~ synthetic.name ~ "` is " ~ ("built from `" ~ private ~ "`, which holds people"
            if private != synthetic.name else "a relation of people") ~ ": a preview of it would be a release that nobody pays for") -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('dp_preview', problems, "model `" ~ model.name ~ "`") -%}
    {%- endif -%}
    {%- set plans = [] -%}
    {%- set declared = veil._declared_policy(node).dp -%}
    {%- set columns = veil._policy_columns(node, veil._inputs(node), problems) -%}
    {%- for epsilon in epsilons or [declared.epsilon] -%}
        {%- for mechanism in mechanisms or [declared.get('mechanism', 'laplace')] -%}
            {%- for groups in max_groups or [declared.get('max_groups', 1)] -%}
                {%- set changed = dict(declared, epsilon=epsilon, mechanism=mechanism) -%}
                {%- do changed.update({'max_groups': groups}) if declared.get('group_by') -%}
                {%- do plans.append(veil._dp(changed, columns, problems, node)) -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if problems -%}
        {%- do veil._fail('dp_preview', problems | unique | list, "release `" ~ release ~ "`") -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('dp_preview', 'veil')(plans, relation, sizes)) -%}
{% endmacro %}

{% macro _dp_release_node(name, problems) %}
    {%- set releases = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and (veil._declared_policy(node).get('dp') or {}).get('measures') -%}
        {%- if node.name == name -%}
            {%- do return(node) -%}
        {%- endif -%}
        {%- do releases.append(node.name) -%}
    {%- endfor -%}
    {%- do problems.append(veil._must_be('release', "a model with a `dp` policy: " ~ (releases | join(", ") or "there is none"), name) ~ veil._nearest(name | string, releases)) -%}
    {%- do veil._fail('dp_preview', problems, "model `" ~ model.name ~ "`") -%}
{% endmacro %}

{% macro default__dp_preview(plans, relation, sizes) %}
    {%- do veil._fail('dp_preview', ["the figures come from Veil's UDFs, which run on DuckDB. Got: '" ~ target.type ~ "'"]) -%}
{% endmacro %}

{% macro duckdb__dp_preview(plans, relation, sizes) -%}
{%- if relation is none -%}
with typical as (

    select
        settings.max_groups,
        1 as groups,
        given.people,
        1.0 as share_kept,
        [given.people] as kept,
    from (select unnest({{ sizes }}) as people) as given
    cross join (select unnest({{ plans | map(attribute='max_groups') | unique | list }}) as max_groups) as settings

),

clamped as (

    select cast(null as varchar) as measure, cast(null as double) as bias

),
{%- else -%}
{{ veil._dp_typical(relation, plans) | trim }},
{%- endif %}

-- The noise of each plan, from its mechanisms alone.
plans as (
    {%- for plan in plans %}
    {%- set mechanisms = veil._dp_mechanisms(plan) %}
    {%- set tau = veil._dp_tau(plan, mechanisms) if plan.selector is not none else none %}
    {%- set selector = mechanisms[plan.selector] if plan.selector is not none else none %}
    {%- for measure in plan.measures if not measure.hidden %}
    {%- set noise = veil._dp_previewed(measure, mechanisms) %}

    select
        {{ plan.epsilon }} as epsilon,
        '{{ plan.mechanism }}' as mechanism,
        {{ plan.max_groups }} as max_groups,
        '{{ measure.name }}' as measure,
        '{{ measure.kind }}' as kind,
        cast({{ noise.scale }} as double) as scale,
        {{ noise.error }} as expected_error,
        cast({{ noise.margin }} as double) as half_width_95,
        {{ "true" if noise.per_person else "false" }} as per_person,
        {{ tau if tau is not none else "cast(null as bigint)" }} as tau,
        {{ "'" ~ selector.kind ~ "'" if selector is not none else "cast(null as varchar)" }} as selector,
        {{ selector.scale if selector is not none else "cast(null as double)" }} as selector_scale,
    {%- if not loop.last %}

    union all
    {%- endif %}
    {%- endfor %}
    {%- if not loop.last %}

    union all
    {%- endif %}
    {%- endfor %}

)

select
    plans.epsilon,
    plans.mechanism,
    plans.max_groups,
    plans.measure,
    plans.kind,
    typical.groups,
    typical.people as median_people,
    plans.scale / (case when plans.per_person then greatest(typical.people * typical.share_kept, 1) else 1 end) as scale,
    plans.expected_error / (case when plans.per_person then greatest(typical.people * typical.share_kept, 1) else 1 end) as expected_error,
    plans.half_width_95 / (case when plans.per_person then greatest(typical.people * typical.share_kept, 1) else 1 end) as half_width_95,
    case when plans.kind in ('count_units', 'count') then plans.expected_error / typical.people end as relative_error,
    plans.tau,
    coalesce(list_avg(list_transform(typical.kept, lambda people: veil_dp_survival(plans.selector, plans.selector_scale, people, plans.tau))), 1) as groups_released,
    1 - typical.share_kept as lost_to_max_groups,
    clamped.bias as clamping_bias,
from plans
inner join typical
    on plans.max_groups = typical.max_groups
left join clamped
    on plans.measure = clamped.measure
order by plans.measure, plans.mechanism, plans.max_groups, plans.epsilon
{%- endmacro %}

{#- Scale, expected error (root mean square) and half-width of a figure. A mean's are those of its sum, to be divided by the
    number of people; for the exponential mechanism they are people (or rows, for a quantile) by which the choice is off. -#}
{% macro _dp_previewed(measure, mechanisms) %}
    {%- set grid = measure.get('grid') or 1 -%}
    {%- if measure.parts[0].mechanism == 'exponential' -%}
        {%- set mechanism = mechanisms[measure.parts[0].name] -%}
        {%- set unit = measure.quantiles[0].below + measure.quantiles[0].above if measure.kind == 'quantile' else 1 -%}
        {%- set known = (measure.candidates or {}).get('values') -%}
        {%- set count = known | length if known else veil._dp_last_position(measure) + 1 if measure.kind == 'quantile' else 100 -%}
        {%- set scale = mechanism.scale / unit -%}
        {%- do return({'scale': scale, 'error': scale ~ " * ln(" ~ count ~ ")", 'margin': scale ~ " * ln(" ~ 20 * count ~ ")", 'per_person': false}) -%}
    {%- endif -%}
    {%- set part = measure.parts[[measure.parts | length - 1, 1] | min if measure.kind != 'variance' else 2] -%}
    {%- set mechanism = mechanisms[part.name] -%}
    {%- set step = grid / 2 if measure.kind == 'mean' else grid * grid / 8 if measure.kind == 'variance' else grid / 2 if measure.kind == 'stddev' else grid -%}
    {%- do return({
        'scale': mechanism.scale * step,
        'error': "veil_dp_deviation('" ~ mechanism.kind ~ "', " ~ mechanism.scale ~ ") * " ~ step,
        'margin': veil._dp_margin(mechanism) * step,
        'per_person': measure.kind in ('mean', 'variance', 'stddev'),
    }) -%}
{% endmacro %}

{#- The groups of a public relation: how large they are, how much of them each `max_groups` keeps, and what clamping adds. -#}
{% macro _dp_typical(relation, plans) -%}
{%- set first = plans[0] -%}
with source_rows as (

    select * from {{ relation }}

),

-- How large the groups are, and how many of the pairs of person and group each `max_groups` keeps.
person_groups as (

    select
        source_rows.{{ veil._quote(first.unit) }} as veil_unit,
        {%- for name in first.group_by %}
        source_rows.{{ veil._quote(name) }},
        {%- endfor %}
        count(*) as veil_rows,
        count(*) over (partition by source_rows.{{ veil._quote(first.unit) }}) as veil_own_groups,
    from source_rows
    where source_rows.{{ veil._quote(first.unit) }} is not null
    group by {{ veil._dp_list(first, 'source_rows', [veil._quote(first.unit)]) }}

),

sizes as (
    {%- for groups in plans | map(attribute='max_groups') | unique %}

    select
        {{ groups }} as max_groups,
        count(*) as people,
        sum(least(1, {{ groups }} / person_groups.veil_own_groups)) as people_kept,
    from person_groups
    {%- if first.group_by %}
    group by {{ veil._dp_list(first, 'person_groups') }}
    {%- endif %}
    {%- if not loop.last %}

    union all
    {%- endif %}
    {%- endfor %}

),

typical as (

    select
        sizes.max_groups,
        count(*) as groups,
        median(sizes.people) as people,
        sum(sizes.people_kept) / sum(sizes.people) as share_kept,
        list(cast(round(sizes.people_kept) as bigint)) as kept,
    from sizes
    group by sizes.max_groups

),

-- What clamping to the bounds adds to a value on average.
clamped as (
    {%- set bounded = first.measures | selectattr('bounds', 'defined') | selectattr('bounds_per', 'equalto', 'row') | list %}
    {%- for measure in bounded %}
    {%- set value = "cast(source_rows." ~ veil._quote(measure.column) ~ " as double)" %}

    select
        '{{ measure.name }}' as measure,
        avg(least(greatest({{ value }}, {{ measure.bounds[0] }}), {{ measure.bounds[1] }}) - {{ value }}) filter (where not isnan({{ value }})) as bias,
    from source_rows
    {%- if not loop.last %}

    union all
    {%- endif %}
    {%- endfor %}
    {%- if not bounded %}

    select null as measure, null as bias
    {%- endif %}

)
{%- endmacro %}
