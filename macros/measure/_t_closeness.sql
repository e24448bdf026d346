{#- How far a class's distribution of the sensitive column is from the reference, by the distance asked for. -#}

{% macro _figures_t(spec, request, n, id) -%}
    {%- if request.kind == 'equal' and request.scope != 'ring' -%}
{{ veil._t_equal(spec, request, n, id) }}
    {%- elif request.kind in ('ordered', 'numeric') and request.scope != 'ring' -%}
{{ adapter.dispatch('_t_along_a_line', 'veil')(spec, request, n, id) }}
    {%- else -%}
{{ veil._moves(spec, request, n, id) }},
        {%- if request.kind == 'equal' %}
{{ veil._t_of_moves(spec, id) }}
        {%- elif request.kind == 'hierarchical' %}
{{ veil._t_along_a_tree(spec, request, id) }}
        {%- else %}
{{ veil._t_by_steps(spec, request, n, id) }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- Total variation. Both sides sum to 1, so what a class has too much of is all that must move, and the values it lacks
    need not be listed. -#}
{% macro _t_equal(spec, request, n, id) -%}
    {%- set surplus = "shares" ~ n ~ ".share - shares" ~ n ~ ".reference_share" -%}
{{ veil._per_class(spec, id, "shares" ~ n, {
    'measured': "sum(case when " ~ surplus ~ " > 0 then " ~ surplus ~ " else 0 end)",
    'reference_scope': veil._literal(request.scope),
}) }}
{%- endmacro %}

{#- Every value of a class or of its reference, with its share on both sides. -#}
{% macro _moves(spec, request, n, id) -%}
    {%- set values = "value_counts" ~ n -%}
    {%- if request.scope == 'ring' -%}
{{ veil._ring_counts(spec, request, n, id) }},
    {%- endif %}
both_sides{{ id }} as (
    select
        {{ veil._key_list(spec, values) }},
        {{ values }}.sensitive_value,
        {{ values }}.people as class_count,
        0 as reference_count,
        {{ values }}.row_count,
        {{ values ~ ".class_people" if spec.unit is not none else values ~ ".people" }} as people,
        0 as from_ring
    from {{ values }}
    union all
    select
        {{ veil._key_list(spec, "classes") }},
        reference{{ n }}.sensitive_value,
        0 as class_count,
        reference{{ n }}.people as reference_count,
        0 as row_count,
        0 as people,
        0 as from_ring
    from classes
    {%- if request.scope == 'ring' %}
    left join ringed{{ id }}
        on {{ veil._same_class(spec, "classes", "ringed" ~ id) }}
    {%- endif %}
    cross join reference{{ n }}
    where
        classes.people > 0
        {%- if request.scope == 'ring' %}
        and ringed{{ id }}.from_ring is null
    union all
    select
        {{ veil._key_list(spec, "ring" ~ id) }},
        ring{{ id }}.sensitive_value,
        0 as class_count,
        ring{{ id }}.people as reference_count,
        0 as row_count,
        0 as people,
        1 as from_ring
    from ring{{ id }}
        {%- endif %}
),
value_sides{{ id }} as (
    select
        {{ veil._key_list(spec, "both_sides" ~ id) }},
        both_sides{{ id }}.sensitive_value,
        sum(both_sides{{ id }}.class_count) as class_count,
        sum(both_sides{{ id }}.reference_count) as reference_count,
        sum(both_sides{{ id }}.row_count) as row_count,
        max(both_sides{{ id }}.people) as people,
        max(both_sides{{ id }}.from_ring) as from_ring
    from both_sides{{ id }}
    group by
        {{ veil._key_list(spec, "both_sides" ~ id) }},
        both_sides{{ id }}.sensitive_value
),
moves{{ id }} as (
    select
        value_sides{{ id }}.*,
        {{ veil._share_of_class(spec, "value_sides" ~ id, "class_count") }} as share,
        {{ veil._share_of_class(spec, "value_sides" ~ id, "reference_count") }} as reference_share
    from value_sides{{ id }}
)
{%- endmacro %}

{% macro _share_of_class(spec, source, column) -%}
{{ veil._double(source ~ "." ~ column) }} / sum({{ source }}.{{ column }}) over (partition by {{ veil._key_list(spec, source) }})
{%- endmacro %}

{#- People per value in the cells around each class: same values of the other quasi-identifiers, own cell left out. -#}
{% macro _ring_counts(spec, request, n, id) -%}
    {%- set place = {} -%}
    {%- for name in spec.quasi_identifiers -%}
        {%- set column = "q_" ~ loop.index -%}
        {%- for key in ['x', 'y', 'cell'] if request.get(key) is not none and request[key] | lower == name | lower -%}
            {%- do place.update({key: column}) -%}
        {%- endfor -%}
    {%- endfor %}
ring{{ id }} as (
    select
        {{ veil._key_list(spec, "classes") }},
        near.s_{{ n }} as sensitive_value,
        {{ veil._people(spec, "near") }} as people
    from classes
    {%- if request.cell is none %}
    cross join (
        {%- for dx in range(-request.radius, request.radius + 1) %}
        {%- for dy in range(-request.radius, request.radius + 1) if dx != 0 or dy != 0 %}
        {{ "union all " if not (loop.first and dx == -request.radius) }}select {{ dx }} as dx, {{ dy }} as dy
        {%- endfor %}
        {%- endfor %}
    ) as around
    inner join counted as near
        on near.{{ place.x }} = classes.{{ place.x }} + around.dx
        and near.{{ place.y }} = classes.{{ place.y }} + around.dy
    {%- else %}
    inner join (
        select distinct neighbour_rows.cell, neighbour_rows.neighbour
        from {{ veil._from(request.neighbours, 'neighbour_rows') }}
        where neighbour_rows.cell <> neighbour_rows.neighbour
    ) as around
        on around.cell = classes.{{ place.cell }}
    inner join counted as near
        on near.{{ place.cell }} = around.neighbour
    {%- endif %}
        {%- for position in spec.positions if position not in place.values() | list %}
        and {{ veil._same("near." ~ position, "classes." ~ position) }}
        {%- endfor %}
    {%- if spec.unit is not none %}
    where near.unit_key is not null
    {%- endif %}
    group by
        {{ veil._key_list(spec, "classes") }},
        near.s_{{ n }}
),
ringed{{ id }} as (
    select distinct
        {{ veil._key_list(spec, "ring" ~ id) }},
        1 as from_ring
    from ring{{ id }}
)
{%- endmacro %}

{% macro _scope_of_moves(request, source) %}
    {%- if request.scope != 'ring' -%}
        {%- do return(veil._literal(request.scope)) -%}
    {%- endif -%}
    {%- do return("case when max(" ~ source ~ ".from_ring) = 1 then 'ring' else 'global, the ring is empty' end") -%}
{% endmacro %}

{% macro _t_of_moves(spec, id) -%}
    {%- set surplus = "moves" ~ id ~ ".share - moves" ~ id ~ ".reference_share" -%}
figures{{ id }} as (
    select
        {{ veil._key_list(spec, "moves" ~ id) }},
        {{ veil._moved_people(spec, "moves" ~ id) }},
        sum(case when {{ surplus }} > 0 then {{ surplus }} else 0 end) as measured,
        {{ veil._scope_of_moves({'scope': 'ring'}, "moves" ~ id) }} as reference_scope
    from moves{{ id }}
    group by {{ veil._key_list(spec, "moves" ~ id) }}
)
{%- endmacro %}

{% macro _moved_people(spec, source) -%}
{{ "max(" ~ source ~ ".people)" if spec.unit is not none else "sum(" ~ source ~ ".people)" }} as people,
        sum({{ source }}.row_count) as row_count
{%- endmacro %}

{#- Earth mover's distance on a line: what is carried past each position, times the step to the next, over the range.
    `ordered` stands at ranks, `numeric` at the numbers themselves. A value without a position (NULL, or one that `order`
    does not list) is a category of its own at distance 1 from all others. -#}
{% macro _t_by_steps(spec, request, n, id) -%}
    {%- set moves = "moves" ~ id -%}
positions{{ id }} as (
    {{ veil._positions(request, n, id) }}
),
line{{ id }} as (
    select
        {{ moves }}.*,
        positions{{ id }}.position
    from {{ moves }}
    left join positions{{ id }}
        on {{ veil._same(moves ~ ".sensitive_value", "positions" ~ id ~ ".sensitive_value") }}
),
stops{{ id }} as (
    select
        {{ veil._key_list(spec, "line" ~ id) }},
        line{{ id }}.position,
        sum(line{{ id }}.share) as share,
        sum(line{{ id }}.reference_share) as reference_share
    from line{{ id }}
    where line{{ id }}.position is not null
    group by
        {{ veil._key_list(spec, "line" ~ id) }},
        line{{ id }}.position
),
steps{{ id }} as (
    select
        {{ veil._key_list(spec, "stops" ~ id) }},
        {{ veil._carried(spec, "stops" ~ id, "share") }}
        - {{ veil._carried(spec, "stops" ~ id, "reference_share") }} as carried,
        lead(stops{{ id }}.position) over (
            partition by {{ veil._key_list(spec, "stops" ~ id) }}
            order by stops{{ id }}.position
        ) - stops{{ id }}.position as step
    from stops{{ id }}
),
{{ veil._span(request, id) }},
costs{{ id }} as (
    select
        {{ veil._key_list(spec, "steps" ~ id) }},
        sum(abs(steps{{ id }}.carried) * steps{{ id }}.step) as cost
    from steps{{ id }}
    group by {{ veil._key_list(spec, "steps" ~ id) }}
),
sides{{ id }} as (
    select
        {{ veil._key_list(spec, "line" ~ id) }},
        {{ veil._moved_people(spec, "line" ~ id) }},
        sum(case when line{{ id }}.position is null then {{ veil._smaller("line" ~ id ~ ".share", "line" ~ id ~ ".reference_share") }} else 0 end) as matched,
        sum(case when line{{ id }}.position is not null then line{{ id }}.share else 0 end) as known_share,
        sum(case when line{{ id }}.position is not null then line{{ id }}.reference_share else 0 end) as known_reference_share,
        {{ veil._scope_of_moves(request, "line" ~ id) }} as reference_scope
    from line{{ id }}
    group by {{ veil._key_list(spec, "line" ~ id) }}
),
figures{{ id }} as (
    select
        {{ veil._key_list(spec, "sides" ~ id) }},
        sides{{ id }}.people,
        sides{{ id }}.row_count,
        1 - sides{{ id }}.matched - {{ veil._smaller("sides" ~ id ~ ".known_share", "sides" ~ id ~ ".known_reference_share") }}
        * (1 - coalesce(costs{{ id }}.cost / nullif(span{{ id }}.span, 0), 0)) as measured,
        sides{{ id }}.reference_scope
    from sides{{ id }}
    cross join span{{ id }}
    left join costs{{ id }}
        on {{ veil._same_class(spec, "sides" ~ id, "costs" ~ id) }}
)
{%- endmacro %}

{% macro _span(request, id) -%}
span{{ id }} as (
    {%- if request.order and request.order is not string %}
    select {{ request.order | length - 1 }} as span
    {%- else %}
    select max(positions{{ id }}.position) - min(positions{{ id }}.position) as span
    from positions{{ id }}
    {%- endif %}
)
{%- endmacro %}

{% macro default___t_along_a_line(spec, request, n, id) -%}
{{ veil._moves(spec, request, n, id) }},
{{ veil._t_by_steps(spec, request, n, id) }}
{%- endmacro %}

{#- The same distance without a row for each class and each value of the table: between two values of a class what is carried
    changes sign once, where the reference reaches the class's share (`reached`), and the reference's own part of the sum is
    a difference of running areas. -#}
{% macro duckdb___t_along_a_line(spec, request, n, id) -%}
    {%- set keys = veil._key_list(spec, "own" ~ id) -%}
positions{{ id }} as (
    {{ veil._positions(request, n, id) }}
),
{{ veil._span(request, id) }},
reference_line{{ id }} as (
    select
        positions{{ id }}.position,
        coalesce(sum(reference_shares{{ n }}.share), 0) as share
    from positions{{ id }}
    left join reference_shares{{ n }}
        on {{ veil._same("positions" ~ id ~ ".sensitive_value", "reference_shares" ~ n ~ ".sensitive_value") }}
    where positions{{ id }}.position is not null
    group by positions{{ id }}.position
),
reached{{ id }} as (
    select
        reference_line{{ id }}.position,
        coalesce(sum(reference_line{{ id }}.share) over (order by reference_line{{ id }}.position)
            / nullif(sum(reference_line{{ id }}.share) over (), 0), 0) as reached,
        lead(reference_line{{ id }}.position) over (order by reference_line{{ id }}.position) - reference_line{{ id }}.position as step
    from reference_line{{ id }}
),
areas{{ id }} as (
    select
        reached{{ id }}.position,
        reached{{ id }}.reached,
        coalesce(sum(reached{{ id }}.reached * reached{{ id }}.step) over (
            order by reached{{ id }}.position
            rows between unbounded preceding and 1 preceding
        ), 0) as area
    from reached{{ id }}
),
crossings{{ id }} as (
    select
        areas{{ id }}.reached,
        min(areas{{ id }}.position) as position,
        min(areas{{ id }}.area) as area
    from areas{{ id }}
    group by areas{{ id }}.reached
),
last_area{{ id }} as (
    select
        max(areas{{ id }}.position) as position,
        max(areas{{ id }}.area) as area
    from areas{{ id }}
),
placed{{ id }} as (
    select
        shares{{ n }}.*,
        positions{{ id }}.position
    from shares{{ n }}
    inner join positions{{ id }}
        on {{ veil._same("shares" ~ n ~ ".sensitive_value", "positions" ~ id ~ ".sensitive_value") }}
),
own{{ id }} as (
    select
        {{ veil._key_list(spec, "placed" ~ id) }},
        placed{{ id }}.position,
        sum(placed{{ id }}.share) as share
    from placed{{ id }}
    where placed{{ id }}.position is not null
    group by
        {{ veil._key_list(spec, "placed" ~ id) }},
        placed{{ id }}.position
),
gaps{{ id }} as (
    select
        {{ keys }},
        own{{ id }}.position as gap_start,
        lead(own{{ id }}.position) over (partition by {{ keys }} order by own{{ id }}.position) as gap_end,
        {{ veil._carried(spec, "own" ~ id, "share") }} as share,
        row_number() over (partition by {{ keys }} order by own{{ id }}.position) as place
    from own{{ id }}
),
costs{{ id }} as (
    select
        {{ veil._key_list(spec, "gaps" ~ id) }},
        sum(
            -- before the first value all of the reference so far has been carried
            case when gaps{{ id }}.place = 1 then start_area.area else 0 end
            + case
                when coalesce(crossing.position, last_area{{ id }}.position) <= gaps{{ id }}.gap_start
                    then {{ veil._gap_area(id) }} - gaps{{ id }}.share * ({{ veil._gap_end(id) }} - gaps{{ id }}.gap_start)
                when coalesce(crossing.position, last_area{{ id }}.position) >= {{ veil._gap_end(id) }}
                    then gaps{{ id }}.share * ({{ veil._gap_end(id) }} - gaps{{ id }}.gap_start) - {{ veil._gap_area(id) }}
                else
                    gaps{{ id }}.share * (2 * crossing.position - gaps{{ id }}.gap_start - {{ veil._gap_end(id) }})
                    + start_area.area + coalesce(end_area.area, last_area{{ id }}.area) - 2 * crossing.area
            end
        ) as cost
    from gaps{{ id }}
    cross join last_area{{ id }}
    inner join areas{{ id }} as start_area
        on start_area.position = gaps{{ id }}.gap_start
    left join areas{{ id }} as end_area
        on end_area.position = gaps{{ id }}.gap_end
    asof left join crossings{{ id }} as crossing
        on gaps{{ id }}.share <= crossing.reached
    group by {{ veil._key_list(spec, "gaps" ~ id) }}
),
known_reference{{ id }} as (
    select coalesce(sum(reference_line{{ id }}.share), 0) as share
    from reference_line{{ id }}
),
{{ veil._per_class(spec, id ~ "_sides", "placed" ~ id, {
    'matched': "sum(case when placed" ~ id ~ ".position is null then "
        ~ veil._smaller("placed" ~ id ~ ".share", "placed" ~ id ~ ".reference_share") ~ " else 0 end)",
    'known_share': "sum(case when placed" ~ id ~ ".position is not null then placed" ~ id ~ ".share else 0 end)",
}) }},
figures{{ id }} as (
    select
        {{ veil._key_list(spec, "sides") }},
        sides.people,
        sides.row_count,
        1 - sides.matched - {{ veil._smaller("sides.known_share", "known_reference" ~ id ~ ".share") }}
        * (1 - coalesce(costs{{ id }}.cost / nullif(span{{ id }}.span, 0), 0)) as measured,
        {{ veil._literal(request.scope) }} as reference_scope
    from figures{{ id }}_sides as sides
    cross join span{{ id }}
    cross join known_reference{{ id }}
    left join costs{{ id }}
        on {{ veil._same_class(spec, "sides", "costs" ~ id) }}
)
{%- endmacro %}

{% macro _gap_end(id) %}
    {%- do return("coalesce(gaps" ~ id ~ ".gap_end, last_area" ~ id ~ ".position)") -%}
{% endmacro %}

{% macro _gap_area(id) %}
    {%- do return("(coalesce(end_area.area, last_area" ~ id ~ ".area) - start_area.area)") -%}
{% endmacro %}

{% macro _smaller(left, right) %}
    {%- do return("case when " ~ left ~ " < " ~ right ~ " then " ~ left ~ " else " ~ right ~ " end") -%}
{% endmacro %}

{% macro _carried(spec, source, column) -%}
coalesce(
            sum({{ source }}.{{ column }}) over (
                partition by {{ veil._key_list(spec, source) }}
                order by {{ source }}.position
                rows between unbounded preceding and current row
            ) / nullif(sum({{ source }}.{{ column }}) over (partition by {{ veil._key_list(spec, source) }}), 0),
            0
        )
{%- endmacro %}

{#- Each value's place on the line. -#}
{% macro _positions(request, n, id) -%}
    {%- set value = "known" ~ id ~ ".sensitive_value" -%}
    {%- if request.kind == 'numeric' or request.order == 'numeric' -%}
        {%- set key = veil._finite_number(value) -%}
    {%- else -%}
        {%- set key = value -%}
    {%- endif -%}
select
        {{ value }},
        {%- if request.kind == 'numeric' %}
        {{ key }} as position
        {%- elif request.order is none or request.order is string %}
        case
            when {{ key }} is not null then dense_rank() over (
                partition by case when {{ key }} is null then 1 else 0 end
                order by {{ key }}
            )
        end as position
        {%- else %}
        case cast({{ value }} as {{ dbt.type_string() }})
            {%- for listed in request.order %}
            when {{ veil._literal(listed | string) }} then {{ loop.index0 }}
            {%- endfor %}
        end as position
        {%- endif %}
    from (
        select value_counts{{ n }}.sensitive_value
        from value_counts{{ n }}
        union distinct
        select reference{{ n }}.sensitive_value
        from reference{{ n }}
    ) as known{{ id }}
{%- endmacro %}

{#- A value as a number, NULL where it is none or not finite; the text of a value must never reach an error. -#}
{% macro _finite_number(expression) %}
    {%- set number = adapter.dispatch('_to_number', 'veil')(expression) | trim -%}
    {%- do return("case when abs(" ~ number ~ ") <= 1e300 then " ~ number ~ " end") -%}
{% endmacro %}

{% macro default___to_number(expression) -%}
{{ veil._double(expression) }}
{%- endmacro %}

{% macro duckdb___to_number(expression) -%}
try_cast(cast({{ expression }} as varchar) as double)
{%- endmacro %}

{#- Earth mover's distance along a tree of height H (Li, Li and Venkatasubramanian 2007, section 4.2): at every node, what
    its children have too much of is carried to those that have too little, at height / H. -#}
{% macro _t_along_a_tree(spec, request, id) -%}
    {%- set height = veil.hierarchy(request.hierarchy).top_level -%}
    {%- set ns = namespace(below="leaves" ~ id) -%}
leaves{{ id }} as (
    select
        {{ veil._key_list(spec, "moves" ~ id) }},
        {%- for level in range(1, height) %}
        {{ veil.generalize('sensitive_value', request.hierarchy, level, relation_alias="moves" ~ id) | indent(8) }} as label_{{ level }},
        {%- endfor %}
        moves{{ id }}.share - moves{{ id }}.reference_share as surplus,
        0 as cost
    from moves{{ id }}
),
    {%- for level in range(1, height + 1) %}
nodes{{ id }}_{{ level }} as (
    select
        {{ veil._key_list(spec, ns.below) }},
        {%- for above in range(level, height) %}
        {{ ns.below }}.label_{{ above }},
        {%- endfor %}
        sum({{ ns.below }}.surplus) as surplus,
        sum({{ ns.below }}.cost) + {{ level }} * {{ veil._smaller(
            "sum(case when " ~ ns.below ~ ".surplus > 0 then " ~ ns.below ~ ".surplus else 0 end)",
            "sum(case when " ~ ns.below ~ ".surplus < 0 then -" ~ ns.below ~ ".surplus else 0 end)",
        ) }} / {{ height }} as cost
    from {{ ns.below }}
    group by
        {{ veil._key_list(spec, ns.below) }}
        {%- for above in range(level, height) %},
        {{ ns.below }}.label_{{ above }}
        {%- endfor %}
),
        {%- set ns.below = "nodes" ~ id ~ "_" ~ level %}
    {%- endfor %}
figures{{ id }} as (
    select
        {{ veil._key_list(spec, "sides" ~ id) }},
        sides{{ id }}.people,
        sides{{ id }}.row_count,
        {{ ns.below }}.cost as measured,
        sides{{ id }}.reference_scope
    from (
        select
            {{ veil._key_list(spec, "moves" ~ id) }},
            {{ veil._moved_people(spec, "moves" ~ id) }},
            {{ veil._scope_of_moves(request, "moves" ~ id) }} as reference_scope
        from moves{{ id }}
        group by {{ veil._key_list(spec, "moves" ~ id) }}
    ) as sides{{ id }}
    inner join {{ ns.below }}
        on {{ veil._same_class(spec, "sides" ~ id, ns.below) }}
)
{%- endmacro %}
