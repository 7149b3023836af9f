import { expect, test } from 'vitest';
import { parseProgress } from './progress.js';

// stdout of inferscope_engine.py with transformers 5.17 and a tiny Llama on the CPU.
const stdout = `{"phase": "load", "type": "phase"}
{"phase": "warmup", "type": "phase"}
{"point": "b1-p8-o4", "iteration": -1, "warmup": true, "e2e_ms": 15.825279, "type": "iteration"}
{"phase": "timed", "type": "phase"}
{"point": "b2-p8-o4", "iteration": 1, "warmup": false, "e2e_ms": 7.289619, "type": "iteration"}
{"point": "b1-p8-o4", "outcome": "measured", "text": null, "type": "point"}`;

test('every line of the process is progress', () => {
  const lines = stdout.split('\n').map(parseProgress);
  expect(lines.map((line) => line?.type)).toEqual([
    'phase',
    'phase',
    'iteration',
    'phase',
    'iteration',
    'point',
  ]);
  expect(lines[4]).toEqual({
    type: 'iteration',
    point: 'b2-p8-o4',
    iteration: 1,
    warmup: false,
    e2e_ms: 7.289619,
  });
});

test.each(['Loading weights: 100%', '{"type": "phase", "phase": "lunch"}', '{"type": "iter', ''])(
  '%s is not progress',
  (line) => expect(parseProgress(line)).toBeNull(),
);
