-- depends_on: {{ ref('people') }}

{{ config(materialized='table') }}

{% if var('adult_csv') -%}
select file.*
from read_csv('{{ var("adult_csv") }}/adult.csv', delim = ';', header = true) as file
{%- else -%}
select people.*
from {{ ref('people') }} as people
{%- endif %}
