{#- Build a candidate, measure it, and publish it by a swap only if it keeps the policy. All in the model's transaction: a
    refused or killed build leaves the last good table, and its record, as they were. -#}

{% materialization release, default, supported_languages=['sql'] %}
    {%- set policy = veil._settled(veil.policy(), model) -%}
    {%- if policy.dp is none -%}
        {%- do veil._check_sealed(sql, 'anonymize') -%}
    {%- elif 'queries' not in policy.dp -%}
        {%- do veil._check_sealed(sql, 'dp_aggregate') -%}
    {%- endif -%}
    {%- do veil._check_indexes() -%}
    {%- set existing = load_cached_relation(this) -%}
    {%- set target = this.incorporate(type='table') -%}
    {%- set candidate = make_intermediate_relation(target) -%}
    {%- set grants = config.get('grants') -%}
    {%- set releases = veil._ensure_releases(this.database) -%}
    {%- if veil._kept(policy, existing, target) -%}
        {{ return({'relations': [target]}) }}
    {%- endif -%}

    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {%- do veil._begin() -%}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}

    {%- do drop_relation_if_exists(load_cached_relation(candidate)) -%}
    {%- set paid = veil._reserve(policy) -%}
    {% call statement('main') -%}
        create table {{ candidate }} as (
            {{ sql }}
        )
    {%- endcall %}
    {%- do veil._settle(policy) -%} {#- what was drawn is spent: nothing more is drawn under it, least of all by a hook -#}

    {%- do veil._remedy(candidate, policy) -%}
    {%- set measured = veil._measure_candidate(candidate, policy) -%}
    {%- set violations = veil._violations(measured, policy) -%}
    {%- if violations -%}
        {%- do drop_relation_if_exists(candidate) -%}
        {%- do veil._refuse(violations, measured, policy) -%}
    {%- endif -%}

    {%- set final = veil._without_helpers(candidate, policy) -%}
    {%- do veil._swap(existing, final, target) -%}
    {%- do create_indexes(target) -%}
    {%- do measured.update({'content_hash': veil._content_hash(target)}) -%}
    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {%- do veil._check_hooks_changed_nothing(target, measured.content_hash, post_hooks) -%}
    {%- do apply_grants(target, grants, should_revoke=should_revoke(existing, full_refresh_mode=True)) -%}
    {%- do persist_docs(target, model) -%}
    {%- do run_query(veil._record_release(releases, target, measured, policy, paid)) -%}

    {{ adapter.commit() }}
    {{ run_hooks(post_hooks, inside_transaction=False) }}
    {%- do log(veil._release_line(target, measured, policy), info=true) -%}
    {{ return({'relations': [target]}) }}
{% endmaterialization %}
