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
        'token': {'macro': 'token', 'options': {
            'domain': {'type': 'text', 'required': "the name of the realm in which tokens join, such as `domain: patients`"},
        }},
        'fpe': {'macro': 'fpe', 'options': {
            'domain': {'type': 'text', 'required': "the name of the realm with a key of its own, such as `domain: cards`"},
            'alphabet': {'type': 'text', 'default': 'digits'},
            'separators': {'type': 'characters', 'default': ' -'},
            'check': {'type': 'choice', 'default': 'none', 'choices': ['none', 'luhn']},
        }},
        'shift': {'macro': 'shift_date', 'options': {
            'unit': {'type': 'text', 'required': "the column that tells people apart, such as `unit: patient_id`"},
            'domain': {'type': 'text', 'required': "the name of the realm in which dates move together, such as `domain: patients`"},
            'days': {'type': 'integer', 'default': 365, 'minimum': 1, 'maximum': 36500},
            'type': {'type': 'choice', 'default': 'date', 'choices': ['date', 'timestamp']},
        }},
        'email': {'macro': 'mask_email', 'options': {
            'keep_domains': {'type': 'names'},
            'rare_below': {'type': 'integer', 'minimum': 2},
            'unit': {'type': 'text'},
        }},
        'year_of_birth': {'macro': 'year_of_birth_with_cap', 'options': {
            'as_of': {'type': 'date', 'required': "the public day at which ages are counted, such as `as_of: '2024-12-31'`"},
            'cap': {'type': 'integer', 'default': 89, 'minimum': 1, 'maximum': 120},
        }},
        'round': {'macro': 'round', 'options': {
            'to': {'type': 'integer', 'minimum': 1},
            'digits': {'type': 'integer', 'minimum': 0, 'maximum': 15},
        }},
        'top_bottom': {'macro': 'top_bottom', 'options': {
            'lower': {'type': 'number'},
            'upper': {'type': 'number'},
        }},
        'fake': {'macro': 'fake', 'options': {
            'what': {'type': 'choice', 'required': "one of name, first_name, last_name, email, phone",
                'choices': ['name', 'first_name', 'last_name', 'email', 'phone']},
            'domain': {'type': 'text', 'required': "the name of the realm with a key of its own, such as `domain: staging`"},
            'locale': {'type': 'text', 'default': 'en_US'},
        }},
        'scrub': {'macro': 'scrub', 'options': {
            'kinds': {'type': 'names'},
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
    {%- if mask is not string and mask is not mapping -%}
        {%- do problems.append(veil._must_be("mask of column " ~ column, "a mask or a mapping with `kind`", mask)) -%}
        {%- do return({'kind': 'drop'}) -%}
    {%- endif -%}
    {%- set given = {'kind': mask} if mask is string else mask -%}
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
        {%- elif rule.type == 'number' -%}
            {%- set value = veil._number(value, name, found) -%}
        {%- elif rule.type == 'names' -%}
            {%- set value = veil._names(value, name, found) if value else none -%}
        {%- elif rule.type == 'characters' -%}
            {%- set value = value | string -%}
        {%- elif rule.type == 'date' -%}
            {%- if not modules.re.fullmatch('[0-9]{4}-[01][0-9]-[0-3][0-9]', value | string) -%}
                {%- do found.append(veil._must_be(name, "a date such as '2024-12-31'", value)) -%}
            {%- endif -%}
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
    {%- elif kind == 'round' and (options.to is none) == (options.digits is none) -%}
        {%- do problems.append("exactly one of `to` and `digits` must be given") -%}
    {%- elif kind == 'top_bottom' -%}
        {%- if options.lower is none and options.upper is none -%}
            {%- do problems.append("`lower` or `upper` must be given") -%}
        {%- elif options.lower is not none and options.upper is not none and options.lower >= options.upper -%}
            {%- do problems.append("`lower` must be below `upper`. Got: " ~ options.lower ~ " and " ~ options.upper) -%}
        {%- endif -%}
    {%- elif kind == 'fpe' -%}
        {%- set named = ['digits', 'upper_alphanumeric', 'alphanumeric'] -%}
        {%- if options.alphabet not in named and options.alphabet | list | unique(case_sensitive=true) | list | length < options.alphabet | length -%}
            {%- do problems.append("`alphabet` must be one of " ~ named | join(", ") ~ ", or two or more different characters. Got: '"
                ~ options.alphabet ~ "'" ~ veil._nearest(options.alphabet, named)) -%}
        {%- endif -%}
        {%- if options.check == 'luhn' and options.alphabet != 'digits' -%}
            {%- do problems.append("`check: luhn` needs the alphabet digits. Got: '" ~ options.alphabet ~ "'") -%}
        {%- endif -%}
    {%- elif kind == 'email' and options.unit is not none and options.rare_below is none -%}
        {%- do problems.append("`unit` needs `rare_below`: it says who is counted") -%}
    {%- elif kind == 'partial' and options.fill | length != 1 -%}
        {%- do problems.append("`fill` must be one character. Got: '" ~ options.fill ~ "'") -%}
    {%- endif -%}
{% endmacro %}
