{#- One hierarchy of the nine: a file of ARX (values first, then one column a level, no header), or the seed's rows. -#}

{% macro hierarchy_levels(attribute, levels) %}
{%- if var('adult_csv') -%}
select
    {%- for level in range(levels + 1) %}
    file.column{{ level }} as level_{{ level }},
    {%- endfor %}
from read_csv(
    '{{ var("adult_csv") }}/adult_hierarchy_{{ attribute }}.csv', delim = ';', header = false, all_varchar = true
) as file
{%- else -%}
select
    {%- for level in range(levels + 1) %}
    seed.level_{{ level }},
    {%- endfor %}
from {{ ref('hierarchies') }} as seed
where seed.attribute = '{{ attribute }}'
{%- endif %}
{% endmacro %}
