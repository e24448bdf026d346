{#- Bounding holds only if one person more or less changes that person's rows and no other. LIMIT, samples and window
    functions over many people break it before bounding can help. Looks at the SQL as written of every model between the
    protected source and the release: a heuristic that finds the usual mistakes, not a proof that there is none. -#}

{% macro _check_stable(node, unit, problems, seen) %}
    {%- for unique_id in (node.get('depends_on') or {}).get('nodes') or [] if unique_id not in seen -%}
        {%- do seen.append(unique_id) -%}
        {%- set upstream = graph.nodes.get(unique_id) -%}
        {%- if upstream and upstream.resource_type == 'model' and veil._unit_upstream(upstream, []) is not none -%}
            {%- set found = veil._unstable_steps(upstream.raw_code, unit) -%}
            {%- if found -%}
                {%- do problems.append("`" ~ upstream.name ~ "`, which it reads, has " ~ found | join(" and ") ~ ": one person can then change the rows of "
                    ~ "others before they are bounded. Remove it, or say in `dp.stable_because` why it cannot") -%}
            {%- endif -%}
            {%- do veil._check_stable(upstream, unit, problems, seen) -%}
        {%- endif -%}
    {%- endfor -%}
{% endmacro %}

{% macro _unstable_steps(raw_code, unit) %}
    {%- set sql = modules.re.sub("(?s)\\{#.*?#\\}|--[^\\n]*|/\\*.*?\\*/|'(?:[^']|'')*'", " ", raw_code | lower) -%}
    {%- set found = [] -%}
    {%- if modules.re.search("\\b(limit|offset|fetch\\s+(?:first|next))\\s*(?:\\d|\\(|\\$|\\{\\{)", sql) -%}
        {%- do found.append("`order by … limit`" if modules.re.search("\\border\\s+by\\b", sql) else "`limit`") -%}
    {%- endif -%}
    {%- if modules.re.search("\\b(tablesample|using\\s+sample)\\b", sql) -%}
        {%- do found.append("a sample of rows") -%}
    {%- endif -%}
    {%- if modules.re.search("\\bdistinct\\s+on\\b", sql) -%}
        {%- do found.append("`distinct on`") -%}
    {%- endif -%}
    {%- set own = "partition\\s+by\\s[^()]*(?<!\\w)" ~ modules.re.escape(unit | string | lower) ~ "(?!\\w)" -%}
    {%- for window in modules.re.findall("\\bover\\s*(\\((?:[^()]|\\([^()]*\\))*\\)|\\w+)", sql) -%}
        {%- set text = window if window.startswith('(') else (modules.re.findall("\\b" ~ window ~ "\\s+as\\s*(\\((?:[^()]|\\([^()]*\\))*\\))", sql) | join(" ")) -%}
        {%- if not modules.re.search(own, text) and "a window function that is not partitioned by `" ~ unit ~ "`" not in found -%}
            {%- do found.append("a window function that is not partitioned by `" ~ unit ~ "`") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(found) -%}
{% endmacro %}
