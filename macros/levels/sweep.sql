{#- Print, for each k, share of people that may be left out, and cap on the levels, the best release: its privacy and its
    utility side by side, as a table and as CSV for a plot. Builds nothing. -#}

{% macro sweep(model, k=none, suppress_up_to=none, max_level=none, metric='loss', weights=none, time_limit=60) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- set node = veil._released_node(model, problems) -%}
    {%- set options = veil._search_options(metric, weights, none, none, 1, false, time_limit, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('sweep', problems) -%}
    {%- endif -%}
    {%- set policy = veil.policy(node=veil._with_open_levels(node)) -%}
    {%- set points = veil._sweep_points(policy, k, suppress_up_to, max_level, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('sweep', problems) -%}
    {%- endif -%}
    {%- set relation = veil._built_input('sweep', node) -%}
    {%- set answer = veil._search('sweep', node, policy, relation, {'ask': 'sweep', 'options': options, 'points': points}) -%}
    {%- do log("veil: sweep of `" ~ node.name ~ "`\n\n" ~ answer.report, info=true) -%}
{% endmacro %}

{#- Every combination; what is not given stays as the policy has it. -#}
{% macro _sweep_points(policy, k, suppress_up_to, max_level, problems) %}
    {%- set ks, shares, caps = [], [], [] -%}
    {%- for one in veil._list(k if k is not none else policy.k) -%}
        {%- do ks.append(veil._integer(one, 'k', problems, minimum=1)) -%}
    {%- endfor -%}
    {%- for one in veil._list(suppress_up_to if suppress_up_to is not none else policy.suppress_up_to) -%}
        {%- do shares.append(veil._number(one, 'suppress_up_to', problems, minimum=0, maximum=1)) -%}
    {%- endfor -%}
    {%- for one in veil._list(max_level) -%}
        {%- do caps.append(veil._integer(one, 'max_level', problems, minimum=0)) -%}
    {%- endfor -%}
    {%- set points = [] -%}
    {%- for one in ks -%}
        {%- for share in shares -%}
            {%- for cap in caps or [none] -%}
                {%- do points.append({'k': one, 'suppress_up_to': share, 'max_level': cap}) -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(points) -%}
{% endmacro %}
