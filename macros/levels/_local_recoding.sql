{#- Local recoding: a table of the tuples of values that occur and the level of each value in its tuple, as the search
    chose them so that every class keeps the policy. A tuple that is not in it is left out. -#}

{% macro _local_recoding(relation, policy) %}
    {%- do return(adapter.dispatch('_local_recoding', 'veil')(relation, policy)) -%}
{% endmacro %}

{% macro default___local_recoding(relation, policy) %}
    {%- do veil._require_udf('anonymize', 'veil_recode') -%}
{% endmacro %}

{% macro duckdb___local_recoding(relation, policy) -%}
{%- do veil._require_udf('anonymize', 'veil_recode') -%}
recoding as materialized (

    {%- if flags.EMPTY %}

    select cast([] as varchar[]) as tuple_values, cast([] as integer[]) as tuple_levels
    where 1 = 0
    {%- else %}

    with {{ veil._search_inputs('anonymize', model, policy, relation) | indent(4) }}
    select unnest({{ veil._call_search('veil_recode', veil._search_request('anonymize', model, policy, {'ask': 'recode'})) | indent(4) }}, recursive := true)
    {%- endif %}

)
{%- endmacro %}

{#- The source rows, each beside the levels of its tuple. -#}
{% macro _join_recoding(policy) -%}
inner join recoding
    on recoding.tuple_values = [
        {%- for name in policy.quasi_identifiers %}
        cast({{ veil._quote(name, 'source_rows') }} as varchar){{ "," if not loop.last }}
        {%- endfor %}
    ]
{%- endmacro %}

{#- The label of a quasi-identifier at the level that its row has. Labels of several levels share a column: it is text. -#}
{% macro _recoded_label(column, policy) -%}
case recoding.tuple_levels[{{ policy.quasi_identifiers.index(column.name) + 1 }}]
    {%- for level in range(veil._top_level(column) + 1) %}
    when {{ level }} then cast({{ veil._label(column, level, policy, 'source_rows') | indent(4) }} as varchar)
    {%- endfor %}
end
{%- endmacro %}
