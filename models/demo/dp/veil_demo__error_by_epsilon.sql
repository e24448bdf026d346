{#- What a count of 10, 100, 1,000 or 10,000 people is worth at each epsilon, before a cent is spent. -#}

with preview as (

    {{ veil.dp_preview(
        'veil_demo__diagnoses_counted',
        sizes=[10, 100, 1000, 10000],
        epsilons=[0.1, 0.25, 0.5, 1.0],
        mechanisms=['laplace', 'gaussian'],
    ) | indent(4) }}

)

select
    preview.median_people as people,
    preview.epsilon,
    preview.mechanism,
    preview.scale,
    preview.half_width_95,
    preview.relative_error,
from preview
order by preview.median_people, preview.mechanism, preview.epsilon
