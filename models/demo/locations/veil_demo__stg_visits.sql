-- 300 people who do not exist and 40 visits of each: home at night, work by day, the rest anywhere. The hash of the
-- row's number takes the place of chance, so that every build gives the same visits.
with visits as (

    select
        people.person_id,
        visits.visit,
        hash(people.person_id, visits.visit, 'place') as place_draw,
        hash(people.person_id, visits.visit, 'hour') as hour_draw
    from (select unnest(range(300)) as person_id) as people
    cross join (select unnest(range(40)) as visit) as visits

),

placed as (

    select
        visits.person_id,
        (visits.hour_draw % 24)::integer as hour,
        case
            when visits.hour_draw % 24 < 8 then hash(visits.person_id, 'home') % 900
            when visits.hour_draw % 24 < 17 then hash(visits.person_id, 'work') % 100
            else visits.place_draw % 900
        end as place
    from visits

),

final as (

    select
        placed.person_id,
        placed.hour,
        -0.20 + (placed.place % 30) * 0.005 as lon,
        51.45 + (placed.place // 30) * 0.003 as lat
    from placed

)

select * from final
