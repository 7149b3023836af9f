import { formatCount, noValue } from '../../format.js';
import { DataTable, DefinitionList } from '../parts.js';
import { factWords } from '../sections/environment.js';
import type { BenchSection } from './bench-parts.js';

export const protocolSection: BenchSection = {
  id: 'environment',
  title: 'Environment',
  render: ({ data: { engine, protocol, variants, environment, cannot } }) => {
    const facts: [string, string][] = [
      ['engine', `${engine.name} ${engine.version ?? ''}`.trim()],
      ['model', engine.model],
      ['weights', engine.weights],
      ['dtype', engine.dtype ?? noValue],
      ['quantisation', engine.quantization ?? 'none'],
      ['device', engine.device_name === null ? engine.device : `${engine.device}, ${engine.device_name}`],
      ['tensor parallel', formatCount(engine.tensor_parallel_size)],
      ['threads', engine.threads === null ? noValue : formatCount(engine.threads)],
      ...variants.map(({ label, launches }): [string, string] => [
        `variant ${label}`,
        `${formatCount(launches)} launches`,
      ]),
      ['timed repeats of a point and launch', formatCount(protocol.repeats)],
      ['warm-up', protocol.warmup],
      ['sampling', protocol.sampling],
      ['seed', String(protocol.seed)],
    ];
    return (
      <>
        <div class="two">
          <DataTable
            caption="What was measured, and how"
            class="whole"
            columns={[{ head: '' }, { head: '', wraps: true }]}
            rows={facts}
          />
          {environment && (
            <DataTable
              caption="Machine and software"
              class="whole"
              columns={[{ head: '' }, { head: '', wraps: true }]}
              rows={environment.map(factWords)}
            />
          )}
        </div>
        {cannot.length > 0 && (
          <DataTable
            caption="What this engine cannot measure"
            columns={[{ head: 'figure' }, { head: 'why', wraps: true }]}
            rows={cannot.map(({ figure, text }) => [figure.replaceAll('_', ' '), text])}
          />
        )}
      </>
    );
  },
};

/** Kept in step with docs/measurement.md. */
const definitions: [term: string, text: string][] = [
  ['TTFT', 'Begin of the request, or batch, to its first token: prefill and the first sampling.'],
  ['TPOT', '(last token − first token) / (output tokens − 1) of one repeat. None for one output token.'],
  ['ITL', 'Every gap between two tokens of the timed repeats; its percentiles show single slow steps.'],
  ['End to end', 'Begin to the last token of the batch.'],
  [
    'Output tokens/s',
    'Batch × output tokens / end to end, prefill included. Decode tokens/s is batch / TPOT, without it.',
  ],
  [
    'Scaling, efficiency',
    'Output tokens/s over that of the smallest batch of the same lengths; that factor over how many times larger the batch is.',
  ],
  ['Knee', 'The largest batch before a doubling gives less than 1.5 times the decode tokens/s.'],
  [
    '95 % interval',
    'Student’s t over the means of the process launches, repeats interleaved within each: what another launch of the same program would give. With one launch it is over repeats and says only how steady that process was.',
  ],
  ['Percentiles, sd', 'Linear between order statistics (type 7); the sample standard deviation (n − 1).'],
  ['Outliers', 'Beyond 1.5 interquartile ranges from the quartiles (Tukey). Marked, never removed.'],
  [
    'Idle',
    '1 − device busy time / host time of the same stage without a profiler. Busy time is from one more repeat under the framework’s profiler.',
  ],
  [
    'MFU, MBU',
    'FLOP/s and bytes/s that the model’s own arithmetic needs, over the hardware’s peak and bandwidth. Above 100 % is an accounting fault.',
  ],
  [
    'GPU utilisation',
    'As the driver samples it: share of time in which any kernel ran, however small. It says little about how well.',
  ],
];

export const benchDefinitionsSection: BenchSection = {
  id: 'definitions',
  title: 'Definitions',
  render: () => <DefinitionList terms={definitions} />,
};
