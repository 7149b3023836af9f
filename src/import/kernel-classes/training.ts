/** Kernels that update weights: PyTorch's fused and foreach optimizers, Apex, DeepSpeed, TorchRec. */
const optimizer =
  /adam|adagrad|\blamb(?!d)|rms_?prop|fused_?sgd|sgd_|FusedSgd|adafactor|lion_kernel|(?:^|_)optimizer_step/i;
/** Kernels that compute gradients. Transposed convolutions of an inference use `dgrad` kernels, which therefore are not listed. */
const backward = /backward|(?:^|_|::|<)bwd(?:_|$|<|\b)|_bwd|bprop|grad_input|grad_weight|GammaBeta/i;
/** Ranges of PyTorch around a training step's parts. */
const ranges = /^(?:Optimizer\.(?:step|zero_grad)#|## ?backward ?##)/;

/**
 * PyTorch's foreach kernels, used by optimizers but also by gradient clipping and zeroing. With other training kernels
 * and no named optimizer, they count as the optimizer.
 */
export const isForeachKernel = (name: string): boolean => /multi_tensor_apply/.test(name);

/** Whether a kernel updates weights. */
export const isOptimizerKernel = (name: string): boolean => optimizer.test(name.slice(0, 1500));

/** Whether a kernel runs only in training. */
export const isTrainingKernel = (name: string): boolean =>
  isOptimizerKernel(name) || backward.test(name.slice(0, 1500));

/** Minimum names of a backward pass; a single operation may be in an inference. */
const minBackwardNames = 2;

/** Whether a capture is of training, by the distinct names of its kernels and ranges. */
export function isTraining(kernels: Iterable<string>, rangeNames: Iterable<string>): boolean {
  for (const name of rangeNames) if (ranges.test(name)) return true;
  let backwardNames = 0;
  for (const name of kernels) {
    if (isOptimizerKernel(name)) return true;
    if (isTrainingKernel(name) && ++backwardNames >= minBackwardNames) return true;
  }
  return false;
}
