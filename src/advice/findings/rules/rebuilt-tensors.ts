import { repeatedTensors } from '../operators/repeated-tensors.js';
import { operatorRule } from '../stage-rule.js';

/** Masks, weights or buffers that do not change are rebuilt in every step. */
export const rebuiltTensors = operatorRule(
  {
    id: 'rebuilt_tensors',
    title: 'Tensors rebuilt in every step',
    docs: {
      finds: 'Masks, weights or buffers that do not change are rebuilt in every step.',
      needs: "PyTorch's profiler with operator shapes of a program without a GPU",
      gain: 'The time of the operators that write them; low end 70 % of it.',
      change: 'Create them once before the loop.',
      withheld: 'less than 5 % of the stage at stake',
    },
    references: [
      {
        title: 'PyTorch Performance Tuning Guide',
        url: 'https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html',
      },
    ],
  },
  repeatedTensors,
);
