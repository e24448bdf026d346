{#- The steps that add noise. Every draw names the query that the ledger reserved for it and the scale that was reserved;
    the results are kept, so that nothing is drawn twice. -#}

{% macro _dp_noisy(plan, mechanisms) -%}
{%- for measure in plan.measures if measure.kind in ('quantile', 'mode', 'top_k', 'histogram') %}
{{ veil._dp_cells(measure, plan, mechanisms) | trim }},
{% endfor %}
-- Noise: whole numbers of steps, exact, drawn once for each group.
noisy_groups as materialized (

    select
        {%- for name in plan.group_by %}
        all_groups.{{ veil._quote(name) }},
        {%- endfor %}
        {%- for part in veil._dp_summed_parts(plan) %}
        {{ veil._dp_draw(mechanisms[part.name], 'all_groups.' ~ veil._dp_name(part)) }} as {{ veil._dp_name(part) }},
        {%- endfor %}
        {%- if not veil._dp_summed_parts(plan) %}
        true as veil_present,
        {%- endif %}
    from all_groups

)
{%- if plan.selector is not none -%}
,
{%- set mechanism = mechanisms[plan.selector] %}
{%- set tau = veil._dp_tau(plan, mechanisms) %}
-- Private groups: released only where the noisy number of people reaches {{ tau }}, so that a group of one person
-- is released with a probability of {{ mechanisms['veil_threshold'].delta | float }} at most.
selected_groups as (

    select *
    from noisy_groups
    where noisy_groups.veil__{{ plan.selector }} >= {{ tau }}

)
{%- endif -%}
{%- endmacro %}

{% macro _dp_draw(mechanism, value) -%}
veil_{{ mechanism.kind }}({{ veil._dp_reservation() }}, '{{ mechanism.query }}', {{ value }}, {{ mechanism.scale }})
{%- endmacro %}

{% macro _dp_tau(plan, mechanisms) %}
    {%- set mechanism = mechanisms[plan.selector] -%}
    {%- do return(veil._dp_ask("veil_dp_tau('" ~ mechanism.kind ~ "', " ~ mechanism.scale ~ ", " ~ mechanisms['veil_threshold'].delta
        ~ ", " ~ plan.max_groups ~ ")") + plan.pre_threshold - 1) -%}
{% endmacro %}

{#- The public values of a measure, the people (or rows) of each group at each of them, and what is chosen or counted. -#}
{% macro _dp_cells(measure, plan, mechanisms) -%}
{%- set name = veil._dp_name(measure) -%}
-- {{ measure.name }}: how many {{ "rows" if measure.kind == 'quantile' else "people" }} of each group are at each public value.
{{ name }}_values as (

    {{ veil._dp_value_list(measure) | trim | indent(4) }}

),

{{ name }}_counts as (

    select
        {%- for column in plan.group_by %}
        brought.{{ veil._quote(column) }},
        {%- endfor %}
        brought.veil_value,
        count(*) as veil_count,
    from (
        select
            {%- for column in plan.group_by %}
            kept_groups.{{ veil._quote(column) }},
            {%- endfor %}
            {{ veil._dp_brought(measure, 'kept_groups.' ~ name) }} as veil_value,
        from kept_groups
    ) as brought
    group by {{ veil._dp_list(plan, 'brought', []) }}{{ ", " if plan.group_by }}brought.veil_value

),

{{ name }}_cells as (

    select
        {%- for column in plan.group_by %}
        all_groups.{{ veil._quote(column) }},
        {%- endfor %}
        {{ name }}_values.veil_position,
        {{ name }}_values.veil_value,
        coalesce({{ name }}_counts.veil_count, 0) as veil_count,
    from all_groups
    cross join {{ name }}_values
    left join {{ name }}_counts
        on {{ veil._dp_same_group(plan, 'all_groups', name ~ '_counts') | trim }}
        and {{ name }}_values.{{ 'veil_position' if measure.kind == 'quantile' else 'veil_value' }} = {{ name }}_counts.veil_value

),

{% if measure.kind == 'quantile' and measure.method == 'exponential' -%}
{{ veil._dp_quantile_choice(measure, plan, mechanisms, name) }}
{%- elif measure.kind == 'quantile' -%}
{{ veil._dp_quantile_histogram(measure, plan, mechanisms, name) }}
{%- elif measure.kind == 'histogram' -%}
{{ veil._dp_histogram(measure, plan, mechanisms, name) }}
{%- else -%}
{{ veil._dp_top(measure, plan, mechanisms, name) }}
{%- endif -%}
{%- endmacro %}

{#- What a person brings: one value, a list of rows for quantiles, and each value once where people are counted. -#}
{% macro _dp_brought(measure, values) -%}
{%- if measure.kind in ('quantile', 'histogram') and measure.rows == 1 -%}
{{ values }}
{%- elif measure.kind == 'quantile' -%}
unnest({{ values }})
{%- else -%}
unnest(list_distinct({{ values }}))
{%- endif -%}
{%- endmacro %}

{% macro _dp_value_list(measure) -%}
{%- if measure.candidates.kind == 'range' -%}
{%- set last = ((measure.candidates.to - measure.candidates.from) / measure.candidates.step) | round | int -%}
select
    steps.range as veil_position,
    {{ measure.candidates.from }} + steps.range * {{ measure.candidates.step }} as veil_value,
from range({{ last + 1 }}) as steps
{%- elif measure.candidates.kind == 'relation' -%}
select
    row_number() over (order by listed.veil_value) - 1 as veil_position,
    listed.veil_value,
from (select distinct {{ veil._quote(measure.column) }} as veil_value from {{ veil._dp_relation(measure.candidates.node) }}) as listed
where listed.veil_value is not null
{%- else -%}
select
    unnest(range({{ measure.candidates['values'] | length }})) as veil_position,
    unnest({{ veil._dp_literals(measure.candidates['values']) }}) as veil_value,
{%- endif -%}
{%- endmacro %}

{#- Mode and top k: the exponential mechanism over the numbers of people, again and again without what was chosen. -#}
{% macro _dp_top(measure, plan, mechanisms, name) -%}
{{ name }}_scores as (

    select
        {%- for column in plan.group_by %}
        cells.{{ veil._quote(column) }},
        {%- endfor %}
        list(cells.veil_count order by cells.veil_position) as veil_utilities,
        list(cells.veil_value order by cells.veil_position) as veil_values,
    from {{ name }}_cells as cells
    {%- if plan.group_by %}
    group by {{ veil._dp_list(plan, 'cells') }}
    {%- endif %}

)
{%- for part in measure.parts -%}
,

{{ name }}_choice_{{ loop.index }} as materialized (

    select
        {%- for column in plan.group_by %}
        scores.{{ veil._quote(column) }},
        {%- endfor %}
        {%- for earlier in range(1, loop.index) %}
        scores.veil_chosen_{{ earlier }},
        {%- endfor %}
        scores.veil_values[scores.veil_choice] as veil_chosen_{{ loop.index }},
        scores.veil_utilities[:scores.veil_choice - 1] || scores.veil_utilities[scores.veil_choice + 1:] as veil_utilities,
        scores.veil_values[:scores.veil_choice - 1] || scores.veil_values[scores.veil_choice + 1:] as veil_values,
        len(scores.veil_values) as veil_candidates,
    from (
        select
            drawn.*,
            {{ veil._dp_draw(mechanisms[part.name], 'drawn.veil_utilities') }} as veil_choice,
        from {{ name }}_{{ "scores" if loop.first else "choice_" ~ (loop.index - 1) }} as drawn
    ) as scores

)
{%- endfor -%}
,

{{ name }}_chosen as (

    select
        {%- for column in plan.group_by %}
        choices.{{ veil._quote(column) }},
        {%- endfor %}
        {%- for part in measure.parts %}
        choices.veil_chosen_{{ loop.index }} as {{ part.name }},
        cast({{ mechanisms[part.name].scale }} as double) as {{ part.name }}_scale,
        cast(0 as double) as {{ part.name }}_lo95,
        {{ mechanisms[part.name].scale }} * ln(20 * (choices.veil_candidates + {{ measure.parts | length - loop.index }})) as {{ part.name }}_hi95,
        {%- endfor %}
    from {{ name }}_choice_{{ measure.parts | length }} as choices

)
{%- endmacro %}

{% macro _dp_histogram(measure, plan, mechanisms, name) -%}
{%- set mechanism = mechanisms[measure.name] -%}
{%- set margin = veil._dp_margin(mechanism) -%}
{{ name }}_noisy as materialized (

    select
        {%- for column in plan.group_by %}
        cells.{{ veil._quote(column) }},
        {%- endfor %}
        cells.veil_position,
        cells.veil_value,
        cast({{ veil._dp_draw(mechanism, 'cells.veil_count') }} as double) as veil_people,
    from {{ name }}_cells as cells

),

{{ name }}_chosen as (

    select
        {%- for column in plan.group_by %}
        noisy.{{ veil._quote(column) }},
        {%- endfor %}
        list({'value': noisy.veil_value, 'people': noisy.veil_people} order by noisy.veil_position) as {{ measure.name }},
        cast({{ mechanism.scale }} as double) as {{ measure.name }}_scale,
        list(noisy.veil_people - {{ margin }} order by noisy.veil_position) as {{ measure.name }}_lo95,
        list(noisy.veil_people + {{ margin }} order by noisy.veil_position) as {{ measure.name }}_hi95,
    from {{ name }}_noisy as noisy
    {%- if plan.group_by %}
    group by {{ veil._dp_list(plan, 'noisy') }}
    {%- endif %}

)
{%- endmacro %}

{% macro _dp_margin(mechanism, terms=1, confidence=0.95) %}
    {%- do return(veil._dp_ask("veil_dp_margin('" ~ mechanism.kind ~ "', " ~ mechanism.scale ~ ", " ~ terms ~ ", " ~ confidence ~ ")")) -%}
{% endmacro %}

{#- How many rows of a group lie below and above each candidate. -#}
{% macro _dp_ranks(plan, name, source) -%}
{{ name }}_ranks as (

    select
        {%- for column in plan.group_by %}
        cells.{{ veil._quote(column) }},
        {%- endfor %}
        cells.veil_position,
        cells.veil_value,
        coalesce(sum(cells.veil_count) over (
            {{ "partition by " ~ veil._dp_list(plan, 'cells') if plan.group_by }} order by cells.veil_position
            rows between unbounded preceding and 1 preceding
        ), 0) as veil_below,
        coalesce(sum(cells.veil_count) over (
            {{ "partition by " ~ veil._dp_list(plan, 'cells') if plan.group_by }} order by cells.veil_position
            rows between 1 following and unbounded following
        ), 0) as veil_above,
        cells.veil_count,
    from {{ source }} as cells

)
{%- endmacro %}

{#- One quantile: a candidate is the better, the nearer the rows below and above it stand in the ratio q to 1 - q. The ends of
    the interval aim at ranks so far off that, with a probability of 97.5 % each, they lie on their side of the quantile;
    the outermost candidate is always a fair answer, at a utility that does not depend on the data. -#}
{% macro _dp_quantile_choice(measure, plan, mechanisms, name) -%}
{{ veil._dp_ranks(plan, name, name ~ '_cells') }},

{{ name }}_scores as (

    select
        {%- for column in plan.group_by %}
        ranks.{{ veil._quote(column) }},
        {%- endfor %}
        list(ranks.veil_value order by ranks.veil_position) as veil_values,
        {%- for one in measure.quantiles %}
        {%- set below = one.above ~ " * ranks.veil_below - " ~ one.below ~ " * (ranks.veil_count + ranks.veil_above)" %}
        {%- set above = one.below ~ " * ranks.veil_above - " ~ one.above ~ " * (ranks.veil_count + ranks.veil_below)" %}
        {%- set reach = veil._dp_reach(mechanisms[one.name ~ '_lo95'], measure) %}
        list(cast(-abs({{ one.above }} * ranks.veil_below - {{ one.below }} * ranks.veil_above) as bigint) order by ranks.veil_position) as {{ one.name }},
        list(cast(greatest(-abs({{ below }} + {{ reach + reach // 2 }}), case when ranks.veil_position = 0 then {{ -(reach // 2) }} else {{ -4 * 10 ** 18 }} end) as bigint)
            order by ranks.veil_position) as {{ one.name }}_lo95,
        list(cast(greatest(-abs({{ above }} + {{ reach + reach // 2 }}), case when ranks.veil_position = {{ veil._dp_last_position(measure) }} then {{ -(reach // 2) }} else {{ -4 * 10 ** 18 }} end) as bigint)
            order by ranks.veil_position) as {{ one.name }}_hi95,
        {%- endfor %}
    from {{ name }}_ranks as ranks
    {%- if plan.group_by %}
    group by {{ veil._dp_list(plan, 'ranks') }}
    {%- endif %}

),

{{ name }}_drawn as materialized (

    select
        {%- for column in plan.group_by %}
        scores.{{ veil._quote(column) }},
        {%- endfor %}
        {%- for part in measure.parts %}
        scores.veil_values[{{ veil._dp_draw(mechanisms[part.name], 'scores.' ~ part.name) }}] as {{ part.name }},
        {%- endfor %}
    from {{ name }}_scores as scores

),

{{ name }}_chosen as (

    select
        {%- for column in plan.group_by %}
        drawn.{{ veil._quote(column) }},
        {%- endfor %}
        {%- for one in measure.quantiles %}
        cast(drawn.{{ one.name }} as double) as {{ one.name }},
        cast({{ mechanisms[one.name].scale / (one.below + one.above) }} as double) as {{ one.name }}_scale,
        cast(least(drawn.{{ one.name }}_lo95, drawn.{{ one.name }}) as double) as {{ one.name }}_lo95,
        cast(greatest(drawn.{{ one.name }}_hi95, drawn.{{ one.name }}) as double) as {{ one.name }}_hi95,
        {%- endfor %}
    from {{ name }}_drawn as drawn

)
{%- endmacro %}

{% macro _dp_last_position(measure) %}
    {%- if measure.candidates.kind == 'list' -%}
        {%- do return(measure.candidates['values'] | length - 1) -%}
    {%- endif -%}
    {%- do return(((measure.candidates.to - measure.candidates.from) / measure.candidates.step) | round | int) -%}
{% endmacro %}

{#- How far below the best utility the choice falls with a probability of 2.5 % at most: scale * ln(40 * candidates). -#}
{% macro _dp_reach(mechanism, measure) %}
    {%- do return(veil._dp_ask("cast(ceil(" ~ mechanism.scale ~ " * ln(40 * " ~ (veil._dp_last_position(measure) + 1) ~ ")) as bigint)")) -%}
{% endmacro %}

{#- All quantiles from one noisy histogram of the candidates: they are functions of it, and so cost nothing more. A candidate
    is in the interval if the noisy ranks do not speak against it at 97.5 % on either side. -#}
{% macro _dp_quantile_histogram(measure, plan, mechanisms, name) -%}
{%- set mechanism = mechanisms[measure.name] -%}
{%- set margin = veil._dp_margin(mechanism, veil._dp_last_position(measure) + 1) -%}
{{ name }}_noisy as materialized (

    select
        {%- for column in plan.group_by %}
        cells.{{ veil._quote(column) }},
        {%- endfor %}
        cells.veil_position,
        cells.veil_value,
        {{ veil._dp_draw(mechanism, 'cells.veil_count') }} as veil_count,
    from {{ name }}_cells as cells

),

{{ veil._dp_ranks(plan, name, name ~ '_noisy') }},

{{ name }}_chosen as (

    select
        {%- for column in plan.group_by %}
        ranks.{{ veil._quote(column) }},
        {%- endfor %}
        {%- for one in measure.quantiles %}
        {%- set widest = [one.below, one.above] | max * margin %}
        {%- set within -%}
            {{ one.above }} * ranks.veil_below - {{ one.below }} * (ranks.veil_count + ranks.veil_above) <= {{ widest }}
            and {{ one.below }} * ranks.veil_above - {{ one.above }} * (ranks.veil_count + ranks.veil_below) <= {{ widest }}
        {%- endset %}
        {%- set chosen = "arg_min(ranks.veil_value, abs(" ~ one.above ~ " * ranks.veil_below - " ~ one.below ~ " * ranks.veil_above))" %}
        cast({{ chosen }} as double) as {{ one.name }},
        cast({{ mechanism.scale }} as double) as {{ one.name }}_scale,
        cast(least({{ chosen }}, coalesce(min(ranks.veil_value) filter (where {{ within }}), min(ranks.veil_value))) as double) as {{ one.name }}_lo95,
        cast(greatest({{ chosen }}, coalesce(max(ranks.veil_value) filter (where {{ within }}), max(ranks.veil_value))) as double) as {{ one.name }}_hi95,
        {%- endfor %}
    from {{ name }}_ranks as ranks
    {%- if plan.group_by %}
    group by {{ veil._dp_list(plan, 'ranks') }}
    {%- endif %}

)
{%- endmacro %}
