{#- What `veil.releases` records of masks: how each identifier was masked, the version of the key that signed, and which
    methods without a formal guarantee the model or anything upstream of it uses. -#}

{% macro _release_masking(policy) %}
    {%- set masks = {} -%}
    {%- for column in policy.get('columns', []) if column.mask is mapping and column.mask.kind not in (none, 'drop') -%}
        {%- do masks.update({column.name: column.mask}) -%}
    {%- endfor -%}
    {%- set masking = {} -%}
    {%- if masks -%}
        {%- do masking.update({'masks': masks}) -%}
    {%- endif -%}
    {%- if masks.values() | selectattr('domain', 'defined') | list -%}
        {%- do masking.update({'key_version': run_query("select veil_key_version('')").columns[0].values()[0] | int}) -%}
    {%- endif -%}
    {%- set informal = veil._informal_methods(model) -%}
    {%- if informal -%}
        {%- do masking.update({'no_formal_guarantee': informal}) -%}
    {%- endif -%}
    {%- do return(masking) -%}
{% endmacro %}

{#- shuffle, swap and microaggregate where a node or one of its ancestors calls them, sorted. -#}
{% macro _informal_methods(node) %}
    {%- set methods = ['microaggregate', 'shuffle', 'swap'] -%}
    {%- set waiting = [node] -%}
    {%- set seen = {} -%}
    {%- set found = [] -%}
    {%- for _ in range(graph.nodes | length + 1) if waiting -%}
        {%- set one = waiting.pop() -%}
        {%- for method in methods if 'macro.veil.' ~ method in one.depends_on.macros and method not in found -%}
            {%- do found.append(method) -%}
        {%- endfor -%}
        {%- for name in one.depends_on.nodes if name in graph.nodes and name not in seen -%}
            {%- do seen.update({name: true}) -%}
            {%- do waiting.append(graph.nodes[name]) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(found | sort) -%}
{% endmacro %}
