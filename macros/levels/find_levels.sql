{#- Print the releases that keep a model's policy, least loss first, and the levels to paste. Builds nothing. -#}

{% macro find_levels(
    model, metric='loss', weights=none, min_level=none, max_level=none, top=6, count=false, time_limit=60
) %}
    {%- if not execute -%}
        {%- do return('') -%}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- set node = veil._released_node(model, problems) -%}
    {%- set options = veil._search_options(metric, weights, min_level, max_level, top, count, time_limit, problems) -%}
    {%- if problems -%}
        {%- do veil._fail('find_levels', problems) -%}
    {%- endif -%}
    {%- set policy = veil.policy(node=veil._with_open_levels(node)) -%}
    {%- set relation = veil._built_input('find_levels', node) -%}
    {%- set answer = veil._search('find_levels', node, policy, relation, {'ask': 'find', 'options': options}) -%}
    {%- do log("veil: levels for `" ~ node.name ~ "`, k " ~ policy.k ~ ", up to " ~ veil._percent(policy.suppress_up_to)
        ~ " of the people left out\n\n" ~ answer.report, info=true) -%}
{% endmacro %}

{#- The options of a search, read and checked. What names columns or a metric is checked where the columns are known. -#}
{% macro _search_options(metric, weights, min_level, max_level, top, count, time_limit, problems) %}
    {%- set options = {
        'metric': metric | string,
        'top': veil._integer(top, 'top', problems, minimum=1),
        'count': veil._boolean(count, 'count', problems),
        'time_limit': veil._number(time_limit, 'time_limit', problems, minimum=0),
    } -%}
    {%- for name, given in {'weights': weights, 'min_level': min_level, 'max_level': max_level}.items() if given is not none -%}
        {%- set own = {} -%}
        {%- for column, value in veil._mapping(given, name, problems).items() -%}
            {%- do own.update({column: veil._number(value, name ~ '.' ~ column, problems, minimum=0) if name == 'weights'
                else veil._integer(value, name ~ '.' ~ column, problems, minimum=0)}) -%}
        {%- endfor -%}
        {%- do options.update({name: own}) -%}
    {%- endfor -%}
    {%- do return(options) -%}
{% endmacro %}

{#- The node of a model with a policy, by name. -#}
{% macro _released_node(model_name, problems) %}
    {%- set known = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and veil._declared_policy(node) -%}
        {%- if node.name == model_name -%}
            {%- do return(node) -%}
        {%- endif -%}
        {%- do known.append(node.name) -%}
    {%- endfor -%}
    {%- do problems.append(veil._must_be('model', "the name of a model with a policy in its YAML (`config.meta.veil`)", model_name)
        ~ veil._nearest(model_name | string, known)) -%}
    {%- do return(none) -%}
{% endmacro %}

{#- A node whose levels are yet to be found. -#}
{% macro _with_open_levels(node) %}
    {%- set declared = dict(veil._declared_policy(node), levels='auto') -%}
    {%- set meta = dict(node.config.get('meta') or {}, veil=declared) -%}
    {%- do return(dict(node, config=dict(node.config, meta=meta))) -%}
{% endmacro %}

{#- Whether the input is there to be read. Before the first build it is not, and `dbt compile` must still do. -#}
{% macro _is_built(node) %}
    {%- set inputs = veil._inputs(node) -%}
    {%- do return(inputs | length == 1 and load_relation(veil._relation_of(inputs[0])) is not none) -%}
{% endmacro %}

{#- The SQL of a test whose input is not there: it compiles, and does not run. -#}
{% macro _unbuilt_sql(node) -%}
select 'the input is not built' as problem
from {{ veil._relation_of(veil._inputs(node)[0]) }}
{%- endmacro %}

{#- The relation that the people come from; it must have been built. -#}
{% macro _built_input(macro, node) %}
    {%- set inputs = veil._inputs(node) -%}
    {%- if inputs | length != 1 -%}
        {%- do veil._fail(macro, ["a release has one input whose columns carry roles. Got: " ~ (inputs | map(attribute='name') | join(", ") or "none")],
            "model `" ~ node.name ~ "`") -%}
    {%- endif -%}
    {%- set relation = load_relation(veil._relation_of(inputs[0])) -%}
    {%- if relation is none -%}
        {%- do veil._fail(macro, ["the input `" ~ inputs[0].name ~ "` is not in the database. Build it first, with `dbt build --select "
            ~ inputs[0].name ~ "`; an ephemeral model has to become a table or a view"], "model `" ~ node.name ~ "`") -%}
    {%- endif -%}
    {%- do return(relation) -%}
{% endmacro %}
