import { expect, test } from 'vitest';
import type { Row } from '../../model/tables.js';
import oracle from '../../llm/oracle/encoder-decoders.json' with { type: 'json' };
import { testHome } from '../../session/test-folder.js';
import { sessionsIn, step } from './test-hand.js';
import { fixtureWorkload } from './test-tiny.js';
import { analyzeUtilization } from './utilization.js';

const sessionOf = sessionsIn(testHome());
const { batch, source, tiny } = oracle;
const workload = fixtureWorkload();
const t5 = { ...workload, model: { ...workload.model!, config: tiny.t5.config } };

/** FLOPs that PyTorch counts. */
const executed = (name: 'encode' | 'first' | 'cached') =>
  Object.values(tiny.t5.flops[name]).reduce((sum, flops) => sum + flops, 0);

const sizes = (new_tokens: number, context_tokens_sum: number): Row<'stages'> => ({
  batch_size: batch,
  new_tokens,
  context_tokens_sum,
});
const decode = (iteration: number, index: number): Row<'stages'> =>
  step('clean', 'decode', 20 * iteration + 5 + index, 20 * iteration + 6 + index, {
    iteration,
    step_index: index,
    ...sizes(batch, batch * (index + 1)),
  });
const prefill = (iteration: number, tokens: number, context = tokens): Row<'stages'> =>
  step('clean', 'prefill', 20 * iteration, 20 * iteration + 4, {
    iteration,
    step_index: 0,
    ...sizes(tokens, context),
  });
const analyzed = async (stages: Row<'stages'>[]) =>
  (await analyzeUtilization(await sessionOf({ stages }, { clean: 'clean' }, t5))).data;

test("an encoder-decoder's steps have the FLOPs that PyTorch counts, with the encoder's length from the prefill", async () => {
  const { stages, steps } = await analyzed([prefill(0, batch * source), decode(0, 0), decode(0, 1)]);
  expect(steps.map((group) => group.map(({ flops }) => flops))).toEqual([
    [executed('encode')],
    [executed('first'), executed('cached')],
  ]);
  expect(stages.map(({ flops }) => flops.value)).toEqual([
    executed('encode'),
    (executed('first') + executed('cached')) / 2,
  ]);
});

test('a call of encoder and decoder has the work of both', async () => {
  const { stages } = await analyzed([prefill(0, batch * (source + 1), batch)]);
  expect(stages.map(({ flops }) => flops.value)).toEqual([executed('encode') + executed('first')]);
});

test('the work is not known if the encoder was not recorded', async () => {
  const { stages } = await analyzed([decode(0, 0), decode(0, 1)]);
  expect(stages.map(({ flops }) => flops.value === null && flops.reason.code)).toEqual(['unknown_sizes']);
});
