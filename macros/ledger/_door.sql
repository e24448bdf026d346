{#- The one way to the ledger: a UDF that writes on its own cursor under the lock of this process. What it refuses comes
    back as `problems`. -#}

{% macro _door(macro, command, arguments, subject=none) %}
    {%- set answer = veil._ask_door(macro, command, arguments) -%}
    {%- if answer.problems -%}
        {%- do veil._fail(macro, answer.problems, subject) -%}
    {%- endif -%}
    {%- do return(answer) -%}
{% endmacro %}

{% macro _ask_door(macro, command, arguments) %}
    {#- Not _require_udf itself: it refuses views, and a view's hook may well ask. -#}
    {%- do adapter.dispatch('_require_udf', 'veil')(macro, command) -%}
    {%- do return(fromjson(run_query("select " ~ veil._door_call(command, arguments)).rows[0][0])) -%}
{% endmacro %}

{% macro _door_call(command, arguments) %}
    {%- set asked = dict(arguments, declared=veil._budgets(), invocation_id=invocation_id) -%}
    {%- do return(command ~ "(" ~ veil._literal(tojson(veil._ledger_place())) ~ ", " ~ veil._literal(tojson(asked)) ~ ")") -%}
{% endmacro %}

{#- The ledger is one table of the warehouse, wherever the models of a target go. -#}
{% macro _ledger_place() %}
    {%- do return({
        'database': target.database,
        'schema': veil._setting('schema'),
        'head': veil._setting('ledger_head') or (flags.TARGET_PATH or 'target') ~ '/veil_ledger_head.json',
    }) -%}
{% endmacro %}

{% macro _ledger_relation() %}
    {%- do return(api.Relation.create(database=target.database, schema=veil._setting('schema'), identifier='ledger', type='table')) -%}
{% endmacro %}

{#- An empty ledger where there is none yet, committed before the transaction of the model that reads it. -#}
{% macro _create_ledger() %}
    {%- if execute and flags.WHICH in ('run', 'build', 'retry') -%}
        {%- do veil._door('create_ledger', 'veil_create_ledger', {}) -%}
        {%- do adapter.commit() -%}
    {%- endif -%}
{% endmacro %}

{#- The answer of an operation, printed. -#}
{% macro _say(lines) %}
    {%- for line in lines -%}
        {%- do log(("veil: " if loop.first else "") ~ line, info=true) -%}
    {%- endfor -%}
{% endmacro %}
