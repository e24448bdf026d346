{#- What a mask may be told. `mask: partial` is short for `mask: {kind: partial}`. -#}

{% macro _mask_kinds() %}
    {%- do return({
        'drop': {'macro': none, 'options': {}},
        'pseudonym': {'macro': 'pseudonym', 'options': {
            'domain': {'type': 'text', 'required': "the name of the realm in which pseudonyms join, such as `domain: patients`"},
            'output': {'type': 'choice', 'default': 'hex', 'choices': ['hex', 'base32', 'uuid', 'bigint']},
            'length': {'type': 'integer'},
            'normalize': {'type': 'choices', 'choices': ['nfc', 'lower', 'trim']},
            'version_prefix': {'type': 'boolean', 'default': false},
        }},
        'partial': {'macro': 'partial', 'options': {
            'first': {'type': 'integer', 'default': 0, 'minimum': 0},
            'last': {'type': 'integer', 'default': 0, 'minimum': 0},
            'fill': {'type': 'text', 'default': '*'},
            'keep_length': {'type': 'boolean', 'default': true},
        }},
        'redact': {'macro': 'redact', 'options': {
            'text': {'type': 'text', 'default': '[redacted]'},
            'nulls': {'type': 'choice', 'default': 'keep', 'choices': ['keep', 'hide']},
        }},
    }) -%}
{% endmacro %}

{#- The mask of a policy's column as {kind: …, option: value, …}, every option present; what is wrong goes to `problems`. -#}
{% macro _mask_policy(mask, column, problems) %}
    {%- set given = {'kind': mask} if mask is string else (mask if mask is mapping else {}) -%}
    {%- set kinds = veil._mask_kinds() -%}
    {%- set kind = veil._choice(given.get('kind'), "mask of column " ~ column, problems, kinds.keys() | list) -%}
    {%- if kind is none -%}
        {%- do return({'kind': 'drop'}) -%}
    {%- endif -%}
    {%- set options = {} -%}
    {%- for name, value in given.items() if name != 'kind' -%}
        {%- do options.update({name: value}) -%}
    {%- endfor -%}
    {%- do return(dict(kind=kind, **veil._mask_options(kind, options, column, problems))) -%}
{% endmacro %}

{#- Options of a mask, read by its table; `column` is named in the messages when a policy is read, not in a direct call. -#}
{% macro _mask_options(kind, given, column, problems) %}
    {%- set known = veil._mask_kinds()[kind].options -%}
    {%- set found = [] -%}
    {%- for name in given if name not in known -%}
        {%- do found.append("the mask `" ~ kind ~ "` has no option `" ~ name ~ "`" ~ veil._nearest(name, known.keys())) -%}
    {%- endfor -%}
    {%- set options = {} -%}
    {%- for name, rule in known.items() -%}
        {%- set value = given.get(name) -%}
        {%- if value is none and rule.required is defined -%}
            {%- do found.append("`" ~ name ~ "` is missing: " ~ rule.required) -%}
        {%- elif value is none -%}
            {%- set value = rule.get('default') -%}
        {%- elif rule.type == 'integer' -%}
            {%- set value = veil._integer(value, name, found, rule.get('minimum'), rule.get('maximum')) -%}
        {%- elif rule.type == 'boolean' -%}
            {%- set value = veil._boolean(value, name, found) -%}
        {%- elif rule.type == 'choice' -%}
            {%- set value = veil._choice(value, name, found, rule.choices) -%}
        {%- elif rule.type == 'choices' -%}
            {%- set value = veil._names(value, name, found) if value else none -%}
            {%- for one in value or [] -%}
                {%- do veil._choice(one, name, found, rule.choices) -%}
            {%- endfor -%}
        {%- else -%}
            {%- set value = veil._text(value, name, found) -%}
        {%- endif -%}
        {%- do options.update({name: value}) -%}
    {%- endfor -%}
    {%- if not found -%}
        {%- do veil._mask_rules(kind, options, found) -%}
    {%- endif -%}
    {%- for problem in found -%}
        {%- do problems.append(("mask `" ~ kind ~ "` of column `" ~ column ~ "`: " if column is not none else "") ~ problem) -%}
    {%- endfor -%}
    {%- do return(options) -%}
{% endmacro %}

{#- What one option demands of another. -#}
{% macro _mask_rules(kind, options, problems) %}
    {%- if kind == 'pseudonym' -%}
        {%- set lengths = {'hex': [16, 64], 'base32': [13, 52]} -%}
        {%- if options.output in lengths and options.length is not none -%}
            {%- do veil._integer(options.length, "length", problems, *lengths[options.output]) -%}
        {%- elif options.length is not none -%}
            {%- do problems.append("`length` has no meaning for the output " ~ options.output) -%}
        {%- endif -%}
        {%- if options.version_prefix and options.output not in lengths -%}
            {%- do problems.append("`version_prefix` needs the output hex or base32. Got: '" ~ options.output ~ "'") -%}
        {%- endif -%}
    {%- elif kind == 'partial' and options.fill | length != 1 -%}
        {%- do problems.append("`fill` must be one character. Got: '" ~ options.fill ~ "'") -%}
    {%- endif -%}
{% endmacro %}
