import { compared, type ComparedMetric, comparedMetrics } from '../../charts/bench/variants.js';
import { formatMs, formatNumber, noValue } from '../../format.js';
import { DataTable } from '../parts.js';
import { BenchChart, type BenchSection, VariantKey } from './bench-parts.js';

const metrics = Object.keys(comparedMetrics) as ComparedMetric[];

export const variantsSection: BenchSection = {
  id: 'variants',
  title: 'Variants side by side',
  applies: ({ data }) =>
    data.variants.length > 1 && metrics.some((metric) => compared(data, metric).length > 0),
  render: ({ data }) => {
    const { variants } = data;
    return (
      <>
        {data.answers.map(({ answer }) => (
          <p>{answer}</p>
        ))}
        <VariantKey result={data} />
        <div class="two">
          {metrics
            .filter((metric) => compared(data, metric).length > 0)
            .map((metric) => (
              <div>
                <h3>{comparedMetrics[metric]}</h3>
                <BenchChart
                  name="bench_variants"
                  part={metric}
                  result={data}
                  label={`${comparedMetrics[metric]} of every variant against the first`}
                >
                  <DataTable
                    caption={`Mean ${comparedMetrics[metric]}, and against ${variants[0]?.label ?? 'the first'}`}
                    columns={[
                      { head: 'point' },
                      ...variants.map(({ label }) => ({ head: label, numeric: true })),
                      ...variants.slice(1).map(({ label }) => ({ head: `${label}, times`, numeric: true })),
                    ]}
                    rows={compared(data, metric).map(({ name, values }) => [
                      name,
                      ...values.map((value) => (value === null ? noValue : formatMs(value))),
                      ...values
                        .slice(1)
                        .map((value) =>
                          value !== null && values[0] ? `${formatNumber(value / values[0])}×` : noValue,
                        ),
                    ])}
                  />
                </BenchChart>
              </div>
            ))}
        </div>
      </>
    );
  },
};
