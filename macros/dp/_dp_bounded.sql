{#- The steps before any noise: `all_groups`, with what each figure needs, every person bounded. Private as it stands. -#}

{% macro _dp_bounded(relation, plan) -%}
{%- set sampled = plan.measures | selectattr('kind', 'in', ['sum', 'mean', 'variance', 'stddev', 'quantile', 'histogram']) | selectattr('rows', 'defined') | list -%}
with source_rows as (

    select * from {{ relation }}

),
{% if plan.key_source.kind in ('lists', 'relation') %}
-- The groups to release. They are public: a group without people is there, and people of other groups are left out.
public_keys as (

    {{ veil._dp_public_keys(plan) | trim | indent(4) }}

),
{% endif %}
-- 1. The rows of people. Every value is clamped to its public bounds and counted in whole steps of a public grid.
people_rows as (

    select
        source_rows.{{ veil._quote(plan.unit) }} as veil_unit,
        {%- for name in plan.group_by %}
        source_rows.{{ veil._quote(name) }},
        {%- endfor %}
        {%- for measure in plan.measures if measure.column is not none %}
        {{ veil._dp_value(measure, plan) | trim | indent(8) }} as {{ veil._dp_name(measure) }},
        {%- endfor %}
    from source_rows
    {%- if plan.key_source.kind in ('lists', 'relation') %}
    inner join public_keys
        on {{ veil._dp_same_group(plan, 'source_rows', 'public_keys') | trim }}
    {%- endif %}
    where source_rows.{{ veil._quote(plan.unit) }} is not null

),
{% if sampled %}
-- 2. The rows of each person in each group, in an order drawn from the operating system's randomness.
shuffled_rows as (

    select people_rows.*, veil_random_key(0) as veil_order
    from people_rows

),

numbered_rows as (

    select
        shuffled_rows.*,
        row_number() over (
            partition by {{ veil._dp_list(plan, 'shuffled_rows', ['veil_unit']) }}
            order by shuffled_rows.veil_order
        ) as veil_row,
    from shuffled_rows

),
{% endif %}
{%- set rows = 'numbered_rows' if sampled else 'people_rows' %}
-- {{ 3 if sampled else 2 }}. What each person brings to each group, bounded.
person_groups as (

    select
        {{ rows }}.veil_unit,
        {%- for name in plan.group_by %}
        {{ rows }}.{{ veil._quote(name) }},
        {%- endfor %}
        {%- for measure in plan.measures %}
        {{- veil._dp_lines(veil._dp_per_person(measure, rows)) }}
        {%- endfor %}
    from {{ rows }}
    group by {{ veil._dp_list(plan, rows, ['veil_unit']) }}

),
{% if plan.group_by %}
-- {{ 4 if sampled else 3 }}. At most {{ plan.max_groups }} group{{ "s" if plan.max_groups > 1 }} of each person, chosen at random.
shuffled_groups as (

    select person_groups.*, veil_random_key(0) as veil_order
    from person_groups

),

numbered_groups as (

    select
        shuffled_groups.*,
        row_number() over (partition by shuffled_groups.veil_unit order by shuffled_groups.veil_order) as veil_group,
    from shuffled_groups

),

kept_groups as materialized (

    select * exclude (veil_order, veil_group)
    from numbered_groups
    where numbered_groups.veil_group <= {{ plan.max_groups }}

),
{% else %}
kept_groups as materialized (

    select * from person_groups

),
{% endif %}
-- {{ (5 if sampled else 4) if plan.group_by else (4 if sampled else 3) }}. Over all people of a group.
exact_groups as (

    select
        {%- for name in plan.group_by %}
        kept_groups.{{ veil._quote(name) }},
        {%- endfor %}
        {%- for measure in plan.measures %}
        {{- veil._dp_lines(veil._dp_over_people(measure)) }}
        {%- endfor %}
    from kept_groups
    {%- if plan.group_by %}
    group by {{ veil._dp_list(plan, 'kept_groups') }}
    {%- endif %}
    {%- if plan.pre_threshold > 1 %}
    having count(*) >= {{ plan.pre_threshold }}
    {%- endif %}

),

all_groups as materialized (

    select
        {%- set public = plan.key_source.kind in ('lists', 'relation') %}
        {%- for name in plan.group_by %}
        {{ 'public_keys' if public else 'exact_groups' }}.{{ veil._quote(name) }},
        {%- endfor %}
        {%- for part in veil._dp_summed_parts(plan) %}
        coalesce(exact_groups.{{ veil._dp_name(part) }}, 0) as {{ veil._dp_name(part) }},
        {%- endfor %}
    {%- if public %}
    from public_keys
    left join exact_groups
        on {{ veil._dp_same_group(plan, 'public_keys', 'exact_groups') | trim }}
    {%- else %}
    from exact_groups
    {%- endif %}

)
{%- endmacro %}

{#- Lines of a select list, on lines of their own. -#}
{% macro _dp_lines(text) %}
    {%- do return("\n        " ~ text | trim if text | trim else "") -%}
{% endmacro %}

{% macro _dp_name(measure_or_part) %}
    {%- do return('veil__' ~ measure_or_part.name) -%}
{% endmacro %}

{#- Columns of an alias, comma-separated. -#}
{% macro _dp_list(plan, alias, first=[]) %}
    {%- set columns = [] -%}
    {%- for name in first -%}
        {%- do columns.append(alias ~ '.' ~ name) -%}
    {%- endfor -%}
    {%- for name in plan.group_by -%}
        {%- do columns.append(veil._quote(name, alias)) -%}
    {%- endfor -%}
    {%- do return(columns | join(', ')) -%}
{% endmacro %}

{% macro _dp_public_keys(plan) -%}
select distinct
    {%- for name in plan.group_by %}
    {%- set value = veil._quote(name, 'listed') if plan.key_source.kind == 'relation' else 'list_' ~ loop.index ~ '.veil_value' %}
    {{ "cast(" ~ value ~ " as " ~ plan.types[name] ~ ")" if plan.types.get(name) else value }} as {{ veil._quote(name) }},
    {%- endfor %}
{%- if plan.key_source.kind == 'relation' %}
from {{ veil._dp_relation(plan.key_source.node) }} as listed
{%- else %}
{%- for name in plan.group_by %}
{{ "from" if loop.first else "cross join" }} (select unnest({{ veil._dp_literals(plan.key_source.lists[name]) }}) as veil_value) as list_{{ loop.index }}
{%- endfor %}
{%- endif %}
{%- endmacro %}

{#- A list has values of one type: beside a text, everything is text. -#}
{% macro _dp_literals(values) %}
    {%- set literals = [] -%}
    {%- set texts = values | select('string') | list -%}
    {%- for value in values -%}
        {%- do literals.append(veil._literal(value | string if texts else value)) -%}
    {%- endfor -%}
    {%- do return('[' ~ literals | join(', ') ~ ']') -%}
{% endmacro %}

{% macro _dp_relation(node) %}
    {%- do return(source(node.source_name, node.name) if node.resource_type == 'source' else ref(node.package_name, node.name)) -%}
{% endmacro %}

{#- A row's value: in steps of the grid, or as the position of the nearest candidate, or as it is. CASE, because greatest()
    and least() would turn NULL and NaN into a bound. -#}
{% macro _dp_value(measure, plan) -%}
{%- set value = veil._quote(measure.column, 'source_rows') -%}
{%- set numeric = measure.kind in ('sum', 'mean', 'variance', 'stddev', 'quantile') -%}
{%- set floating = (plan.types.get(measure.column) or 'double') | lower in ('double', 'float', 'real') -%}
{%- set wide = modules.re.match('u?hugeint|decimal|numeric', plan.types.get(measure.column, '') | lower) -%}
{%- set compared = "cast(" ~ value ~ " as double)" if wide else value -%} {#- a value too large for the bound's type would be printed in an error -#}
{%- if not numeric -%}
{{ value }}
{%- elif measure.kind == 'quantile' and measure.candidates.kind == 'list' -%}
case
    when {{ value }} is null{{ " or isnan(cast(" ~ value ~ " as double))" if floating }} then null
    {%- for candidate in measure.candidates['values'][:-1] %}
    when {{ compared }} < {{ (candidate + measure.candidates['values'][loop.index]) / 2 }} then {{ loop.index0 }}
    {%- endfor %}
    else {{ measure.candidates['values'] | length - 1 }}
end
{%- else -%}
{%- if measure.kind == 'quantile' -%}
    {%- set lower = measure.candidates.from -%}
    {%- set upper = measure.candidates.to -%}
    {%- set lowest = 0 -%}
    {%- set highest = ((upper - lower) / measure.candidates.step) | round | int -%}
    {%- set steps = "round((" ~ value ~ " - " ~ lower ~ ") / " ~ measure.candidates.step ~ ")" -%}
{%- elif measure.bounds_per == 'group' -%}
    {%- set lower = -1e18 * measure.grid -%}
    {%- set upper = 1e18 * measure.grid -%}
    {%- set lowest = '-1000000000000000000' -%}
    {%- set highest = '1000000000000000000' -%}
    {%- set steps = value if measure.grid == 1 else "round(" ~ value ~ " / " ~ measure.grid ~ ")" -%}
{%- else -%}
    {%- set lower = measure.bounds[0] -%}
    {%- set upper = measure.bounds[1] -%}
    {%- set lowest = measure.lower_steps -%}
    {%- set highest = measure.upper_steps -%}
    {%- set steps = value if measure.grid == 1 else "round(" ~ value ~ " / " ~ measure.grid ~ ")" -%}
{%- endif -%}
case
    when {{ value }} is null{{ " or isnan(cast(" ~ value ~ " as double))" if floating }} then null
    when {{ compared }} <= {{ lower }} then {{ lowest }}
    when {{ compared }} >= {{ upper }} then {{ highest }}
    else cast({{ steps }} as bigint)
end
{%- endif -%}
{%- endmacro %}

{#- What one person brings to one group for a measure. -#}
{% macro _dp_per_person(measure, rows) -%}
{%- set value = rows ~ '.' ~ veil._dp_name(measure) -%}
{%- set within = " filter (where " ~ rows ~ ".veil_row <= " ~ measure.get('rows') ~ ")" -%}
{%- if measure.kind == 'count' %}
        least(count({{ value if measure.column is not none else '*' }}), {{ measure.rows }}) as {{ veil._dp_name(measure) }},
{%- elif measure.kind == 'sum' and measure.bounds_per == 'group' %}
        case
            when sum({{ value }}) <= {{ measure.lower_steps }} then {{ measure.lower_steps }}
            when sum({{ value }}) >= {{ measure.upper_steps }} then {{ measure.upper_steps }}
            else cast(sum({{ value }}) as bigint)
        end as {{ veil._dp_name(measure) }},
{%- elif measure.kind == 'sum' %}
        cast(sum({{ value }}){{ within }} as bigint) as {{ veil._dp_name(measure) }},
{%- elif measure.kind in ('mean', 'variance', 'stddev') %}
        {%- set middle = measure.lower_steps + measure.upper_steps %}
        {%- set width = measure.upper_steps - measure.lower_steps %}
        count({{ value }}){{ within }} as {{ veil._dp_name(measure.parts[0]) }},
        cast(sum(2 * {{ value }} - {{ middle }}){{ within }} as bigint) as {{ veil._dp_name(measure.parts[1]) }}, -- half steps from the middle of the bounds
        {%- if measure.parts | length > 2 %}
        cast(sum(2 * (2 * {{ value }} - {{ middle }}) * (2 * {{ value }} - {{ middle }}) - {{ width * width }}){{ within }} as bigint) as {{ veil._dp_name(measure.parts[2]) }},
        {%- endif %}
{%- elif measure.kind in ('quantile', 'histogram') and measure.rows == 1 %}
        max({{ value }}){{ within }} as {{ veil._dp_name(measure) }}, -- the value of the one row
{%- elif measure.kind in ('quantile', 'histogram') %}
        list({{ value }}){{ within }} as {{ veil._dp_name(measure) }},
{%- elif measure.kind in ('mode', 'top_k') %}
        list({{ value }}) as {{ veil._dp_name(measure) }},
{%- endif %}
{%- endmacro %}

{% macro _dp_over_people(measure) -%}
{%- if measure.kind == 'count_units' %}
        count(*) as {{ veil._dp_name(measure) }},
{%- elif measure.kind in ('count', 'sum', 'mean', 'variance', 'stddev') -%}
{%- for part in measure.parts %}
        sum(kept_groups.{{ veil._dp_name(part) }}) as {{ veil._dp_name(part) }},
{%- endfor %}
{%- endif %}
{%- endmacro %}

{#- The parts that are sums over people, and so columns of all_groups. -#}
{% macro _dp_summed_parts(plan) %}
    {%- set parts = [] -%}
    {%- for measure in plan.measures if measure.kind in ('count_units', 'count', 'sum', 'mean', 'variance', 'stddev') -%}
        {%- do parts.extend(measure.parts) -%}
    {%- endfor -%}
    {%- do return(parts) -%}
{% endmacro %}
