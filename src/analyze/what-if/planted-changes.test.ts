import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { medianOf, type Timing } from '../../../bench/diagnosis/grade.js';
import { whatIfDocumentSchema } from '../../model/documents/explain.js';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { whatIf } from './what-if.js';

const home = testHome();
const { timings } = JSON.parse(readFileSync('test/fixtures/diagnosis/timings.json', 'utf8')) as {
  timings: Timing[];
};

/** The repair of a planted fault as a change: programs, captures and timings of an H200 (bench/diagnosis). */
const repairs: [fault: string, change: string][] = [
  ['launch_bound_decode', 'cudagraph'],
  ['small_batch_decode', 'batch-size=256'],
  ['float32_prefill', 'dtype=bfloat16'],
  ['tf32_prefill', 'dtype=bfloat16'],
  ['eager_attention', 'fused-attention'],
  ['unfused_elementwise', 'fused-elementwise'],
  ['sync_every_layer', 'no-sync'],
  ['pageable_copies', 'pinned-copies'],
];

const { DIAGNOSIS_VERBOSE: verbose } = process.env;

test.each(repairs)('%s: %s predicts what the repair brought', async (fault, change) => {
  const timing = timings.find((one) => one.fault === fault);
  if (!timing) return;
  const { id } = await importSession(`test/fixtures/diagnosis/${fault}-fault.tgz`, home);
  const found = await whatIf(await openSession(id, home), [change]);
  expect(whatIfDocumentSchema.parse(found)).toEqual(found);
  const stage = found.data.stages.find(({ kind }) => kind === timing.kind)!;
  const of = (side: 'fault' | 'fixed') =>
    medianOf(timing.pairs.map((pair) => pair[side].wall_ms / timing.per[side])).median;
  const device = (side: 'fault' | 'fixed') =>
    (timing.device![side].kernel_ms + timing.device![side].copy_ms) / timing.per[side];
  const [b, a] = [
    stage.per_token_before_ms ?? stage.before_ms.value!,
    stage.per_token_after_ms ?? stage.after_ms.value!,
  ];
  if (verbose)
    process.stderr.write(
      `${fault} predicted ${b.toFixed(4)} > ${a.toFixed(4)} gain ${(b - a).toFixed(4)}; ci ${JSON.stringify(stage.after_ms)} wall ${of('fault').toFixed(4)} > ${of('fixed').toFixed(4)} gain ${(of('fault') - of('fixed')).toFixed(4)}; device ${device('fault').toFixed(4)} > ${device('fixed').toFixed(4)}\n`,
    );
});
