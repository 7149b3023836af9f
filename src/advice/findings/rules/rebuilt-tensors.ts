import { repeatedTensors } from '../operators/repeated-tensors.js';
import { operatorRule } from '../stage-rule.js';

/** Masks, weights or buffers that are the same in every step are made in every step. */
export const rebuiltTensors = operatorRule(
  {
    id: 'rebuilt_tensors',
    title: 'Tensors made anew in every step',
    references: [
      {
        title: 'PyTorch Performance Tuning Guide',
        url: 'https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html',
      },
    ],
  },
  repeatedTensors,
);
