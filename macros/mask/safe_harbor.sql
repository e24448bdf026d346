{#- The Safe Harbor list of HIPAA (45 CFR 164.514(b)(2)) as one SELECT: every column of the relation is given one place. -#}

{% macro safe_harbor(relation, populations=none, as_of=none, identifiers=none, zips=none, dates=none, birth_dates=none, ages=none, keep=none) %}
    {%- set problems = [] -%}
    {%- set places = {} -%}
    {%- for place, names in {
        'identifiers': identifiers, 'zips': zips, 'dates': dates, 'birth_dates': birth_dates, 'ages': ages, 'keep': keep,
    }.items() if names -%}
        {%- for name in veil._names(names, place, problems) -%}
            {%- if name | lower in places -%}
                {%- do problems.append("the column `" ~ name ~ "` is in `" ~ places[name | lower] ~ "` and in `" ~ place ~ "`") -%}
            {%- endif -%}
            {%- do places.update({name | lower: place}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if zips and populations is none -%}
        {%- do problems.append("`populations` must be a relation with the columns zip3 and population, for `zips`") -%}
    {%- endif -%}
    {%- if birth_dates -%}
        {%- do veil._mask_options('year_of_birth', {'as_of': as_of}, none, problems) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do veil._fail('safe_harbor', problems) -%}
    {%- endif -%}
    {%- if not execute -%}
        {%- do return('select 1') -%}
    {%- endif -%}
    {%- set names = veil._columns_with('safe_harbor', relation, places.keys() | list) -%}
    {%- set unplaced = [] -%}
    {%- for name in names if name | lower not in places -%}
        {%- do unplaced.append(name) -%}
    {%- endfor -%}
    {%- if unplaced -%}
        {%- do veil._fail('safe_harbor', ["no place is given for " ~ unplaced | join(", ")
            ~ ". Put each in identifiers (left out), zips, dates, birth_dates, ages or keep"], relation | string) -%}
    {%- endif -%}
    {%- do return(adapter.dispatch('safe_harbor', 'veil')(relation, names, places, populations, as_of)) -%}
{% endmacro %}

{% macro default__safe_harbor(relation, names, places, populations, as_of) -%}
{%- set zips = [] -%}
{%- for name in names if places[name | lower] == 'zips' -%}
    {%- do zips.append(name) -%}
{%- endfor -%}
with source_rows as (

    select * from {{ relation }}

),

{%- if zips %}

-- the areas of the first three digits that have more than 20,000 people
large_areas as (

    select populations.zip3
    from {{ populations }} as populations
    group by populations.zip3
    having sum(populations.population) > 20000

),

{%- endif %}

final as (

    select
        {%- for name in names if places[name | lower] != 'identifiers' %}
        {{ veil._safe_harbor_expression(name, places[name | lower], as_of) }} as {{ veil._quote(name) }}{{ "," if not loop.last }}
        {%- endfor %}
    from source_rows

)

select
    {%- for name in names if places[name | lower] != 'identifiers' %}
    final.{{ veil._quote(name) }}{{ "," if not loop.last }}
    {%- endfor %}
from final
{%- endmacro %}

{% macro _safe_harbor_expression(name, place, as_of) %}
    {%- set column = veil._quote(name, 'source_rows') -%}
    {%- if place == 'dates' -%}
        {%- do return("extract(year from " ~ column ~ ")") -%}
    {%- elif place == 'birth_dates' -%}
        {%- do return(veil.year_of_birth_with_cap(name, as_of=as_of, alias='source_rows')) -%}
    {%- elif place == 'ages' -%}
        {%- do return("case when " ~ column ~ " > 89 then '90+' else cast(floor(" ~ column ~ ") as integer)::varchar end") -%}
    {%- elif place == 'zips' -%}
        {%- set zip = "cast(" ~ column ~ " as varchar)" -%}
        {%- do return("case when " ~ zip ~ " is null then null when regexp_full_match(" ~ zip ~ ", '[0-9]{5}(-?[0-9]{4})?') and left("
            ~ zip ~ ", 3) in (select large_areas.zip3 from large_areas) then left(" ~ zip ~ ", 3) else '000' end") -%}
    {%- endif -%}
    {%- do return(column) -%}
{% endmacro %}
