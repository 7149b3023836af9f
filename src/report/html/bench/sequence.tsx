import type { FC } from 'hono/jsx';
import type { BenchAnswer, BenchFit, BenchResult } from '../../../model/documents/bench.js';
import { fitsOf } from '../../charts/bench/fit.js';
import { formatMs, formatNumber, formatPercent } from '../../format.js';
import { DataTable } from '../parts.js';
import { BenchChart, type BenchSection, VariantKey } from './bench-parts.js';

const fits: [id: BenchFit['id'], title: string, answer: BenchAnswer['id'] | null][] = [
  ['prompt', 'First token against the prompt', 'prompt_cost'],
  ['output', 'End to end against the output', 'output_cost'],
  ['batch_ttft', 'First token against the batch', null],
  ['batch_tpot', 'Time per output token against the batch', null],
];

/** "18.2 + 0.0121 x + 3.98e-6 x²". */
function formula({ coefficients }: BenchFit): string {
  const power = ['', ' x', ' x²', ' x³'];
  return coefficients
    .map((coefficient, index) => {
      const size = Math.abs(coefficient);
      const text = size > 0 && size < 1e-3 ? size.toExponential(2) : formatNumber(size);
      const sign = coefficient < 0 ? '− ' : index === 0 ? '' : '+ ';
      return `${sign}${text}${power[index] ?? ` x^${index}`}`;
    })
    .join(' ');
}

const FitTables: FC<{ result: BenchResult; id: string }> = ({ result, id }) => {
  const all = fitsOf(result, id);
  const several = result.variants.length > 1;
  return (
    <>
      <DataTable
        caption="Fits"
        columns={[
          ...(several ? [{ head: 'variant' }] : []),
          { head: `${all[0]?.fit.y ?? 'y'}, ${all[0]?.fit.unit ?? ''}` },
          { head: 'points', numeric: true },
          { head: 'R²', numeric: true },
          { head: 'error (rms)', numeric: true },
        ]}
        rows={all.map(({ label, fit }) => [
          ...(several ? [label] : []),
          formula(fit),
          String(fit.n),
          formatNumber(fit.r2, 4),
          formatPercent(fit.rms_error),
        ])}
      />
      <DataTable
        caption="Measured and fitted"
        columns={[
          ...(several ? [{ head: 'variant' }] : []),
          { head: all[0]?.fit.x ?? 'x', numeric: true },
          { head: 'measured', numeric: true },
          { head: 'fitted', numeric: true },
          { head: 'off by', numeric: true },
        ]}
        rows={all.flatMap(({ label, fit }) =>
          fit.at.map(({ x, measured, fitted }) => [
            ...(several ? [label] : []),
            formatNumber(x),
            formatMs(measured),
            formatMs(fitted),
            formatPercent(fitted / measured - 1),
          ]),
        )}
      />
    </>
  );
};

const shown = (result: BenchResult) => fits.filter(([id]) => fitsOf(result, id).length > 0);

/** With several variants the answers stand together in their own section. */
const answersOf = ({ variants }: BenchResult, id: BenchAnswer['id'] | null): string[] =>
  variants.length > 1
    ? []
    : variants.flatMap(({ answers }) => answers.filter((one) => one.id === id).map(({ answer }) => answer));

export const sequenceSection: BenchSection = {
  id: 'sequence',
  title: 'What length and batch cost',
  applies: ({ data }) => shown(data).length > 0,
  render: ({ data }) => (
    <>
      <VariantKey result={data} />
      <div class="two">
        {shown(data).map(([id, title, answer]) => (
          <div>
            <h3>{title}</h3>
            {answersOf(data, answer).map((text) => (
              <p>{text}</p>
            ))}
            <BenchChart
              name="bench_fit"
              part={id}
              result={data}
              label={`${title}: measured means with 95 % intervals and the fit`}
            >
              <FitTables result={data} id={id} />
            </BenchChart>
          </div>
        ))}
      </div>
    </>
  ),
};
