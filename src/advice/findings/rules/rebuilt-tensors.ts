import { repeatedTensors } from '../operators/repeated-tensors.js';
import { operatorRule } from '../stage-rule.js';

/** Masks, weights or buffers that are the same in every step are made in every step. */
export const rebuiltTensors = operatorRule(
  {
    id: 'rebuilt_tensors',
    title: 'Tensors made anew in every step',
    docs: {
      finds: 'Masks, weights or buffers that are the same in every step are made again in every step.',
      needs: "PyTorch's profiler with operator shapes of a program without a GPU",
      gain: 'The time of the operators that make them; low end 70 % of it.',
      change: 'Make them once before the loop.',
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
