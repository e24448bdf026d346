-- one row a person, numbered within the address
with addresses as (

    select * from {{ ref('veil_demo__soho_deaths') }}

),

people as (

    select
        addresses.*,
        unnest(range(addresses.deaths)) as number_at_address
    from addresses

),

final as (

    select
        people.address_id * 100 + people.number_at_address as death_id,
        people.address_id,
        people.lon,
        people.lat
    from people

)

select * from final
