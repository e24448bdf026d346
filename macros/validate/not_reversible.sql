{#- Ways in which a released column can be turned back into an identifier without a key: it holds the identifiers
    themselves in another order, a simple encoding of them, or, where rows can be paired, numbers in their order. -#}

{% macro not_reversible(relation, column, source, identifier, paired_by=none, max_share=0) %}
    {%- set problems = [] -%}
    {%- do veil._text(column, 'column_name', problems) -%}
    {%- do veil._text(identifier, 'identifier', problems) -%}
    {%- set pairing = veil._names(paired_by, 'paired_by', problems) if paired_by else [] -%}
    {%- set max_share = veil._number(max_share, 'max_share', problems, minimum=0, maximum=1) -%}
    {%- if problems -%}
        {%- do veil._fail('not_reversible', problems) -%}
    {%- endif -%}
    {%- do veil._require_udf('not_reversible', 'veil_encodings') -%}
    {%- do return(adapter.dispatch('not_reversible', 'veil')(relation, column, source, identifier, pairing, max_share)) -%}
{% endmacro %}

{% macro default__not_reversible(relation, column, source, identifier, pairing, max_share) -%}
{{ veil._released_values(relation, column) }}

identifiers as (

    select distinct cast(source_rows.{{ veil._quote(identifier) }} as varchar) as identifier
    from {{ source }} as source_rows
    where source_rows.{{ veil._quote(identifier) }} is not null

),

encodings as (

    select unnest(veil_encodings(identifiers.identifier)) as encoding
    from identifiers

),

encoded as (

    select
        released.released_value,
        min(encodings.encoding.method) as method
    from released
    inner join encodings
        on released.released_value = encodings.encoding.value
    group by released.released_value

),

{%- if pairing %}

pairs as (

    select distinct
        cast(released_rows.{{ veil._quote(column) }} as varchar) as released_value,
        cast(source_rows.{{ veil._quote(identifier) }} as varchar) as identifier
    from released_rows
    inner join {{ source }} as source_rows
        on {% for name in pairing -%}
        {%- if not loop.first %}
        and {% endif -%}
        released_rows.{{ veil._quote(name) }} = source_rows.{{ veil._quote(name) }}
        {%- endfor %}
    where
        released_rows.{{ veil._quote(column) }} is not null
        and source_rows.{{ veil._quote(identifier) }} is not null

),

-- the rank of each value among its like, as numbers where all are numbers
ranked as (

    select
        dense_rank() over (order by try_cast(pairs.released_value as decimal(38, 9)), pairs.released_value) as released_rank,
        dense_rank() over (order by try_cast(pairs.identifier as decimal(38, 9)), pairs.identifier) as identifier_rank
    from pairs

),

order_kept as (

    select
        count(*) as pair_count,
        abs(corr(ranked.released_rank, ranked.identifier_rank)) as rank_correlation
    from ranked

),

{%- endif %}

validation_errors as (

    select
        'the column is the identifier: ' || encoded.method as problem,
        count(*) as released_values
    from encoded
    group by encoded.method
    having (select count(*) from encoded) > {{ max_share }} * (select count(*) from released)
    {%- if pairing %}
    union all
    select
        'the column keeps the order of the identifier' as problem,
        order_kept.pair_count as released_values
    from order_kept
    where
        order_kept.pair_count >= 10
        and order_kept.rank_correlation > 0.999
    {%- endif %}

)

select
    validation_errors.problem,
    validation_errors.released_values
from validation_errors
{%- endmacro %}

{% test not_reversible(model, source, identifier, column_name=none, paired_by=none, max_share=0) %}
    {{- veil.not_reversible(model, column_name, source, identifier, paired_by, max_share) }}
{% endtest %}
