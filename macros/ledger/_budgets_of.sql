{#- The budgets that guard anything upstream of a model. A differentially private release on the way is no longer private
    data, and is not passed; a k-anonymous one is. -#}

{% macro _budgets_of(node, problems) %}
    {%- set found = [] -%}
    {%- for upstream in veil._ancestors(node, {}) -%}
        {%- do found.extend(veil._guards_of(upstream, problems)) -%}
    {%- endfor -%}
    {%- set unguarded = [] -%}
    {%- for upstream in veil._ancestors(node, {}, pass_guarded=false) if veil._has_roles(upstream) and not veil._is_guarded(upstream) -%}
        {%- do unguarded.append(upstream.name) -%}
    {%- endfor -%}
    {%- if unguarded -%}
        {%- do problems.append("no budget guards `" ~ unguarded | unique | join("`, `") ~ "`, which it reads and whose columns hold people. "
            ~ "Name it under `source` of a budget in `veil__budgets`") -%}
    {%- endif -%}
    {%- do return(found | unique | sort) -%}
{% endmacro %}

{#- Everything that a node is built from, each once. -#}
{% macro _ancestors(node, seen, pass_guarded=true) %}
    {%- for unique_id in (node.get('depends_on') or {}).get('nodes') or [] if unique_id not in seen -%}
        {%- set upstream = graph.nodes.get(unique_id) or graph.sources.get(unique_id) -%}
        {%- if upstream and not veil._is_noisy(upstream) -%}
            {%- do seen.update({unique_id: upstream}) -%}
            {%- if pass_guarded or not veil._guards_of(upstream, []) -%}
                {%- do veil._ancestors(upstream, seen, pass_guarded) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(seen.values() | list) -%}
{% endmacro %}

{#- Whether a budget guards a node, or something that it is built from. -#}
{% macro _is_guarded(node) %}
    {%- for one in [node] + veil._ancestors(node, {}) if veil._guards_of(one, []) -%}
        {%- do return(true) -%}
    {%- endfor -%}
    {%- do return(false) -%}
{% endmacro %}

{#- `veil__budgets`, or a stop where it is no mapping. -#}
{% macro _budgets() %}
    {%- set budgets = veil._setting('budgets') or {} -%}
    {%- if budgets is not mapping -%}
        {%- do veil._fail('release', [veil._must_be('veil__budgets', "a mapping of names to budgets", budgets)]) -%}
    {%- endif -%}
    {%- do return(budgets) -%}
{% endmacro %}

{% macro _is_noisy(node) %}
    {%- do return(node.resource_type == 'model' and node.config.materialized == 'release'
        and veil._declared_policy(node).get('dp') is not none) -%}
{% endmacro %}

{% macro _guards_of(node, problems) %}
    {%- set names = [node.name, node.unique_id, (node.get('source_name') or '') ~ '.' ~ node.name] -%}
    {%- set guards = [] -%}
    {%- for budget, terms in veil._budgets().items() if terms is mapping -%}
        {%- set sources = [terms.source] if terms.get('source') is string else terms.get('source') or [] -%}
        {%- if sources | select('in', names) | list -%}
            {%- do guards.append(budget) -%}
            {%- set units = node.columns.values() | map(attribute='name') | map('lower') | list -%}
            {%- if terms.get('unit') is string and terms.unit | lower not in units -%}
                {%- do problems.append("`veil__budgets." ~ budget ~ ".unit` names `" ~ terms.unit ~ "`, which is no column of `" ~ node.name
                    ~ "` in its YAML" ~ veil._nearest(terms.unit, node.columns.values() | map(attribute='name') | list)) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(guards) -%}
{% endmacro %}

{#- The budgets for whose sources a data test `units_disjoint` stands in the project. -#}
{% macro _proven_disjoint(budgets) %}
    {%- set proven = [] -%}
    {%- for test in graph.nodes.values() if test.resource_type == 'test' and (test.get('test_metadata') or {}).get('name') == 'units_disjoint' -%}
        {%- for unique_id in test.depends_on.nodes -%}
            {%- set tested = graph.nodes.get(unique_id) or graph.sources.get(unique_id) -%}
            {%- if tested -%}
                {%- for budget in veil._guards_of(tested, []) if (test.config.get('severity') or 'error') | lower == 'error' and test.config.get('where') is none
                        and (test.test_metadata.kwargs.get('unit') or '') | string | lower == veil._budgets()[budget].get('unit') | string | lower -%}
                    {%- do proven.append(budget) -%}
                {%- endfor -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(budgets | select('in', proven) | list) -%}
{% endmacro %}
