{#- The keys of a policy that bound a measure: `l: 3` for every sensitive column, or a mapping from column to its own
    threshold or options, `l: {diagnosis: {l: 3, kind: distinct}}`. Returns the requests, by key. -#}

{% macro _measure_keys() %}
    {%- do return(['l', 't', 'beta', 'delta_disclosure', 'alpha']) -%}
{% endmacro %}

{% macro _measure_policy(declared, columns, problems) %}
    {%- set read = {} -%}
    {%- for key in veil._measure_keys() -%}
        {%- do read.update({key: none if declared.get(key) is none
            else veil._measure_requests(key, declared[key], columns, problems)}) -%}
    {%- endfor -%}
    {%- if declared.get('remedy') is not none -%}
        {%- do veil._check_remedy(declared, read, problems) -%}
    {%- endif -%}
    {%- do return(read) -%}
{% endmacro %}

{#- Remedies work on classes that are told apart by value, one sensitive column at a time. -#}
{% macro _check_remedy(declared, read, problems) %}
    {%- if declared.remedy | string | lower != 'true' -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- set requests = veil._policy_requests(read) -%}
    {%- if not requests -%}
        {%- do problems.append("`remedy` mends classes that break a measure, and the policy names none. Name one, for example `t: 0.2`") -%}
    {%- endif -%}
    {%- if declared.get('nulls', 'group') == 'wildcard' -%}
        {%- do problems.append("`remedy` does not go with `nulls: wildcard`: its classes overlap") -%}
    {%- endif -%}
    {%- for request in requests if request.joint or request.get('scope') == 'ring' -%}
        {%- do problems.append("`remedy` does not go with `" ~ request.measure ~ "." ~ request.column ~ "."
            ~ ("joint: true" if request.joint else "reference: ring") ~ "`: a change of one class would change others") -%}
    {%- endfor -%}
{% endmacro %}

{% macro _measure_requests(measure, value, columns, problems) %}
    {%- set sensitive = columns | selectattr('role', 'equalto', 'sensitive') | list -%}
    {%- set names = sensitive | map(attribute='name') | list -%}
    {%- if not names -%}
        {%- do problems.append("`" ~ measure ~ "` bounds what a class tells of a sensitive column, and no column has the role `sensitive`") -%}
        {%- do return([]) -%}
    {%- endif -%}
    {%- set wanted = value -%}
    {%- if value is not mapping -%}
        {%- set wanted = {} -%}
        {%- for name in names -%}
            {%- do wanted.update({name: value}) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- for name in wanted if name not in names -%}
        {%- do problems.append("`" ~ measure ~ "` names `" ~ name ~ "`, which is not a sensitive column of the input"
            ~ veil._nearest(name, names)) -%}
    {%- endfor -%}
    {%- set requests = [] -%}
    {%- for column in sensitive if column.name in wanted -%}
        {%- do requests.append(veil._measure_request(measure, column, wanted[column.name], value is mapping, problems)) -%}
    {%- endfor -%}
    {%- do return(requests) -%}
{% endmacro %}

{#- A column's own `order` and `hierarchy` serve the distances that need one. -#}
{% macro _measure_request(measure, column, value, by_column, problems) %}
    {%- set where = measure ~ ("." ~ column.name ~ "." if by_column and value is mapping else "") -%}
    {%- set threshold = veil._measures()[measure].threshold -%}
    {%- set options = dict(value) if value is mapping else {threshold: value} -%}
    {%- if measure == 't' and options.get('distance') == 'ordered' and options.get('order') is none -%}
        {%- do options.update({'order': column.order}) -%}
    {%- elif measure == 't' and options.get('distance') == 'hierarchical' and options.get('hierarchy') is none -%}
        {%- do options.update({'hierarchy': column.hierarchy}) -%}
    {%- endif -%}
    {%- if value is mapping -%}
        {%- do return(veil._request(measure, column.name, options, problems, where)) -%}
    {%- endif -%}
    {%- set own_problems = [] -%}
    {%- set request = veil._request(measure, column.name, options, own_problems, "") -%}
    {%- for problem in own_problems -%}
        {%- set text = problem | replace("`" ~ threshold ~ "`", "`" ~ measure ~ ("." ~ column.name if by_column else "") ~ "`") -%}
        {%- if text not in problems -%}
            {%- do problems.append(text) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(request) -%}
{% endmacro %}
