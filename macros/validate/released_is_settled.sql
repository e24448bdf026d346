{% test released_is_settled(model) %}
    {%- if model is string -%}
        {%- do veil._fail('released_is_settled', ["the test is about a whole table: take its `where` away"]) -%}
    {%- endif -%}
with last_release as (

    select
        releases.release_id,
        releases.budget
    from {{ veil._releases_relation(model.database) }} as releases
    where lower(replace(releases.relation, '"', '')) = {{ veil._literal(model | string | replace('"', '') | lower) }}
    order by releases.released_at desc
    limit 1

),

settled as (

    select ledger.release_id
    from {{ veil._ledger_relation() }} as ledger
    where ledger.event = 'settle'

),

validation_errors as (

    select
        last_release.release_id,
        'published without a settled reservation' as problem
    from last_release
    left join settled
        on last_release.release_id = settled.release_id
    where last_release.budget is null
        or settled.release_id is null

    union all

    select
        null as release_id,
        'no record of a release that made this table' as problem
    from (select count(*) as releases from last_release) as counted
    where counted.releases = 0

)

select * from validation_errors
{% endtest %}
