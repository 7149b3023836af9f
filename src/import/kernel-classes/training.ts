import { matchedLetters } from './classify.js';

/** Kernels that update weights: PyTorch's fused and foreach optimizers, Apex, DeepSpeed, TorchRec. */
const optimizerPattern =
  /adam|adagrad|\blamb(?!d)|rms_?prop|fused_?sgd|sgd_|FusedSgd|adafactor|lion_kernel|(?:^|_)optimizer_step/i;
/** Kernels that compute gradients. Transposed convolutions of an inference use `dgrad` kernels, which therefore are not listed. */
const backwardPattern = /backward|(?:^|_|::|<)bwd(?:_|$|<|\b)|_bwd|bprop|grad_input|grad_weight|GammaBeta/i;
/** Ranges of PyTorch around a training step's parts. */
const trainingRangePattern = /^(?:Optimizer\.(?:step|zero_grad)#|## ?backward ?##)/;

/**
 * PyTorch's foreach kernels, used by optimizers but also by gradient clipping and zeroing. With other training kernels
 * and no named optimizer, they count as the optimizer.
 */
export const isForeachKernel = (name: string): boolean => /multi_tensor_apply/.test(name);

/** Whether a kernel updates weights. */
export const isOptimizerKernel = (name: string): boolean =>
  optimizerPattern.test(name.slice(0, matchedLetters));

/** Whether a kernel runs only in training. */
export const isTrainingKernel = (name: string): boolean =>
  isOptimizerKernel(name) || backwardPattern.test(name.slice(0, matchedLetters));

/** Minimum names of a backward pass; a single operation may be in an inference. */
const minBackwardNames = 2;

/** Whether a capture is of training, by the distinct names of its kernels and ranges. */
export function isTraining(kernels: Iterable<string>, rangeNames: Iterable<string>): boolean {
  for (const name of rangeNames) if (trainingRangePattern.test(name)) return true;
  let backwardCount = 0;
  for (const name of kernels) {
    if (isOptimizerKernel(name)) return true;
    if (isTrainingKernel(name) && ++backwardCount >= minBackwardNames) return true;
  }
  return false;
}
