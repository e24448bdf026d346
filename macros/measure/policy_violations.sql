{#- What a measured row breaks of its policy: what failed and by how much, in counts and figures only. -#}

{% macro policy_violations(policy, measured_row) %}
    {%- set violations = [] -%}
    {%- if measured_row.classes and measured_row.k < policy.k -%}
        {%- do violations.append("the smallest class has " ~ measured_row.k ~ (" person" if measured_row.k == 1 else " people")
            ~ ", and `k` is " ~ policy.k) -%}
    {%- endif -%}
    {%- for figure in veil.measured_figures(policy, measured_row) if figure.failing -%}
        {%- do violations.append(figure.label ~ " must be " ~ figure.bound ~ ". Got: " ~ veil._figure_text(figure.measured)
            ~ " in the worst class; " ~ figure.failing ~ " of " ~ measured_row.classes ~ " classes fail") -%}
    {%- endfor -%}
    {%- do return(violations) -%}
{% endmacro %}

{#- The figures of a measured row by name: measure, column, kind, reference scope, threshold, figure, failing classes. -#}
{% macro measured_figures(policy, measured_row) %}
    {%- set figures = [] -%}
    {%- for request in veil._policy_requests(policy) -%}
        {%- set measured = measured_row['measured_' ~ loop.index] -%}
        {%- set measured = measured | float if measured is not none else none -%}
        {%- do figures.append({
            'measure': request.measure,
            'column': request.column,
            'kind': request.get('kind'),
            'reference': request.scope,
            'joint': request.joint,
            'threshold': request.threshold,
            'bound': "below c = " ~ request.c ~ " at l = " ~ request.threshold if request.get('kind') == 'recursive'
                else request.keeps ~ " " ~ request.threshold,
            'measured': measured,
            'failing': measured_row['failing_' ~ loop.index] | int,
            'label': veil._measure_label(request),
        }) -%}
    {%- endfor -%}
    {%- do return(figures) -%}
{% endmacro %}

{% macro _figure_text(figure) %}
    {%- do return("none" if figure is none else '%.6g' | format(figure)) -%}
{% endmacro %}
