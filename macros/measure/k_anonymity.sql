{% macro k_anonymity(relation, quasi_identifiers, unit=none, nulls='group', suppressed_marker=none) %}
    {%- set problems = [] -%}
    {%- set spec = veil._spec(relation, quasi_identifiers, problems, [], unit, nulls, suppressed_marker) -%}
    {%- if problems -%}
        {%- do veil._fail('k_anonymity', problems) -%}
    {%- endif -%}
    {{- return(adapter.dispatch('k_anonymity', 'veil')(spec)) -}}
{% endmacro %}

{% macro default__k_anonymity(spec) -%}
with {{ veil._counted(spec) }},
{{ veil._classes(spec) }},
{{ veil._totals(spec) }},
{{ veil._class_summary(spec) }}
select
    class_summary.classes,
    class_summary.k,
    class_summary.unique_people,
    class_summary.rows_with_null,
    totals.people,
    totals.row_count,
    totals.people_suppressed,
    totals.rows_suppressed,
    {{ veil._ratio('totals.people_suppressed', 'totals.people') }} as share_suppressed
from class_summary
cross join totals
{%- endmacro %}

{#- A share, 0 where there is nothing to share. -#}
{% macro _ratio(part, whole) %}
    {%- do return("coalesce(" ~ veil._double(part) ~ " / nullif(" ~ whole ~ ", 0), 0)") -%}
{% endmacro %}

{% macro _double(expression) %}
    {%- do return(adapter.dispatch('_double', 'veil')(expression)) -%}
{% endmacro %}

{% macro default___double(expression) %}
    {%- do return("cast(" ~ expression ~ " as double precision)") -%}
{% endmacro %}

{% macro duckdb___double(expression) %}
    {%- do return("cast(" ~ expression ~ " as double)") -%}
{% endmacro %}

{% macro spark___double(expression) %}
    {%- do return("cast(" ~ expression ~ " as double)") -%}
{% endmacro %}

{% macro bigquery___double(expression) %}
    {%- do return("cast(" ~ expression ~ " as float64)") -%}
{% endmacro %}
