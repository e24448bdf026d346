{#- A policy with the levels it is built at: as written, or searched for when they are `auto`. Asked once in a run for each
    model, so that what is recorded is what was built. -#}

{% macro _settled(policy, node) %}
    {%- if policy.levels != 'auto' or policy.recoding == 'local' -%}
        {%- do return(policy) -%}
    {%- endif -%}
    {%- do return(dict(policy, levels=veil._auto_levels(policy, node))) -%}
{% endmacro %}

{% macro _auto_levels(policy, node) %}
    {%- if flags.EMPTY or flags.WHICH not in ('run', 'build', 'retry') -%}
        {#- What only compiles reads nobody's rows; it keeps nothing of them either. -#}
        {%- set levels = {} -%}
        {%- for column in policy.columns if column.role == 'quasi_identifier' -%}
            {%- do levels.update({column.name: veil._top_level(column)}) -%}
        {%- endfor -%}
        {%- do return(levels) -%}
    {%- endif -%}
    {%- set relation = veil._built_input('anonymize', node) -%}
    {%- set request = {'ask': 'find', 'options': {'top': 1}, 'once': invocation_id ~ ' ' ~ node.unique_id} -%}
    {%- set answer = veil._search('anonymize', node, policy, relation, request) -%}
    {%- if not answer.exact -%}
        {%- do exceptions.warn("veil: `" ~ node.name ~ "`: the levels found are the best within the time limit, not known to be the best of all. "
            ~ "Find levels with a cap (veil.find_levels) and write them into the policy") -%}
    {%- endif -%}
    {%- do return(answer.levels) -%}
{% endmacro %}
