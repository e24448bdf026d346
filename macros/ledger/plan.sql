{#- Print what a run will spend, before its first model, and refuse it whole if it does not fit. An on-run-start hook, or an
    operation. Debits nothing: every model is still checked by itself when it reserves. -#}

{% macro plan(models=none) %}
    {%- set building = flags.WHICH in ('run', 'build') and not flags.EMPTY -%}
    {%- if not execute or not (building or flags.WHICH == 'run-operation') -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set releases = [] -%}
    {%- set names = [models] if models is string else models or [] -%}
    {%- for node in graph.nodes.values() | sort(attribute='unique_id') if veil._is_noisy(node)
            and (node.unique_id in selected_resources if building else models is none or node.name in names) -%}
        {%- do releases.append(veil._spending(node, veil.policy(node=node))) -%}
    {%- endfor -%}
    {%- if releases or not building -%}
        {%- set answer = veil._ask_door('plan', 'veil_budget_plan', {'releases': releases}) -%}
        {%- do veil._say(answer.lines) -%}
        {%- if answer.problems -%}
            {%- do veil._fail('plan', answer.problems, "this run is refused before its first model") -%}
        {%- endif -%}
    {%- endif -%}
    {%- do return('') -%}
{% endmacro %}
