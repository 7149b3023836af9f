import { expect, test } from 'vitest';
import { allocationsOf } from './timeline.js';
import { rowsOf, memoryRow } from './test-run.js';

test("reads an allocation's number of blocks from its column, not from its source's name", () => {
  const source = 'torch.cuda.memory._snapshot, 9 blocks';
  const rows = rowsOf({
    recorded: [
      memoryRow('allocation:prefill:model.py:12 forward', 10, { blocks: 32, source }),
      memoryRow('allocation:decode:cache.py:7 update', 20, { source }),
    ],
  });
  expect(allocationsOf(rows)).toEqual([
    { gpu: 0, stage: 'decode', operator: 'cache.py:7 update', bytes: 20e6, blocks: null },
    { gpu: 0, stage: 'prefill', operator: 'model.py:12 forward', bytes: 10e6, blocks: 32 },
  ]);
});
