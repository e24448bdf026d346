{#- Calendar levels of dates and timestamps. Years are floored with whole numbers, so that 1969 is in 1960-1969. -#}

{#- Each unit, and the units that are a function of it. -#}
{% macro _date_units() %}
    {%- set from_year = ['decade', 'century'] -%}
    {%- set from_quarter = ['year'] + from_year -%}
    {%- set from_month = ['quarter'] + from_quarter -%}
    {%- set from_day = ['week', 'weekday', 'month'] + from_month -%}
    {%- do return({
        'hour': ['hour_of_day', 'part_of_day', 'day'] + from_day,
        'day': from_day,
        'week': [],
        'month': from_month,
        'quarter': from_quarter,
        'year': from_year,
        'decade': ['century'],
        'century': [],
        'hour_of_day': ['part_of_day'],
        'part_of_day': [],
        'weekday': [],
    }) -%}
{% endmacro %}

{% macro _check_dates(spec, problems) %}
    {%- set units = veil._date_units() -%}
    {%- set found = problems | length -%}
    {%- set levels = veil._names(spec.get('levels'), 'levels', problems) -%}
    {%- for unit in levels -%}
        {%- do veil._choice(unit, 'levels', problems, units.keys() | list) -%}
    {%- endfor -%}
    {%- if problems | length > found -%}
        {%- do return({}) -%}
    {%- endif -%}
    {%- for i in range(1, levels | length) if levels[i] not in units[levels[i - 1]] -%}
        {%- do problems.append("`levels` do not nest: `" ~ levels[i] ~ "` is not a function of `" ~ levels[i - 1] ~ "`, which can be followed by "
            ~ (units[levels[i - 1]] | join(", ") if units[levels[i - 1]] else "nothing but the top level")) -%}
    {%- endfor -%}
    {%- do return({'units': levels, 'top_level': levels | length + 1}) -%}
{% endmacro %}

{#- A date without a year is an infinite one. -#}
{% macro _label_dates(value, checked, level) %}
    {%- set unit = checked.units[level - 1] -%}
    {%- if unit in ('week', 'weekday') -%}
        {%- do adapter.dispatch('_check_weeks', 'veil')(unit) -%}
    {%- endif -%}
    {%- set parts = {'guards': ["extract(year from " ~ value ~ ") is null"]} -%}
    {%- if unit == 'part_of_day' -%}
        {%- set hour = "extract(hour from " ~ value ~ ")" -%}
        {%- do parts.update({'branches': [[hour ~ " < 6", "'night'"], [hour ~ " < 12", "'morning'"], [hour ~ " < 18", "'afternoon'"]],
            'otherwise': "'evening'"}) -%}
    {%- elif unit == 'weekday' -%}
        {%- set days = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'] -%}
        {%- set branches = [] -%}
        {%- for day in days -%}
            {%- do branches.append(["extract(isodow from " ~ value ~ ") = " ~ loop.index, "'" ~ day ~ "'"]) -%}
        {%- endfor -%}
        {%- do parts.update({'branches': branches, 'otherwise': "'Sunday'"}) -%}
    {%- else -%}
        {%- do parts.update({'otherwise': adapter.dispatch('_date_label', 'veil')(value, unit)}) -%}
    {%- endif -%}
    {%- do return(parts) -%}
{% endmacro %}

{#- Engines disagree on the day a week begins with, on its number and on the number of a day. -#}
{% macro default___check_weeks(unit) %}
    {%- do veil._fail('generalize', ["`" ~ unit ~ "` is known on DuckDB alone. Use `day` or `month`, or a lookup"]) -%}
{% endmacro %}

{% macro duckdb___check_weeks(unit) %}{% endmacro %}

{% macro default___date_label(value, unit) %}
    {%- set year = veil._date_part(value, 'year', 4) -%}
    {%- set month = year ~ " || '-' || " ~ veil._date_part(value, 'month', 2) -%}
    {%- set day = month ~ " || '-' || " ~ veil._date_part(value, 'day', 2) -%}
    {%- do return({
        'hour': day ~ " || ' ' || " ~ veil._date_part(value, 'hour', 2) ~ " || ':00'",
        'hour_of_day': veil._date_part(value, 'hour', 2),
        'day': day,
        'month': month,
        'quarter': year ~ " || '-Q' || " ~ veil._date_part(value, 'quarter', 1),
        'year': year,
        'decade': veil._years_label(value, 10),
        'century': veil._years_label(value, 100),
    }[unit]) -%}
{% endmacro %}

{% macro duckdb___date_label(value, unit) %}
    {%- set formats = {'hour': '%Y-%m-%d %H:00', 'hour_of_day': '%H', 'day': '%Y-%m-%d', 'week': '%G-W%V', 'month': '%Y-%m', 'year': '%Y'} -%}
    {%- if unit in formats -%}
        {%- do return("strftime(" ~ value ~ ", '" ~ formats[unit] ~ "')") -%}
    {%- endif -%}
    {%- do return(veil.default___date_label(value, unit)) -%}
{% endmacro %}

{% macro _date_part(value, part, digits) %}
    {%- set text = "cast(extract(" ~ part ~ " from " ~ value ~ ") as " ~ dbt.type_string() ~ ")" -%}
    {%- do return(text if digits == 1 else "lpad(" ~ text ~ ", " ~ digits ~ ", '0')") -%}
{% endmacro %}

{% macro _years_label(value, years) %}
    {%- set year = "extract(year from " ~ value ~ ")" -%}
    {%- set first = year ~ " - mod(mod(" ~ year ~ ", " ~ years ~ ") + " ~ years ~ ", " ~ years ~ ")" -%}
    {%- do return("cast(" ~ first ~ " as " ~ dbt.type_string() ~ ") || '-' || cast(" ~ first ~ " + " ~ (years - 1) ~ " as " ~ dbt.type_string() ~ ")") -%}
{% endmacro %}
