/**
 * The name of a kernel without return type, template arguments and parameters, as nsys shortens it:
 * "void at::native::vectorized_elementwise_kernel<4, …>(int, …)" -> "vectorized_elementwise_kernel". Names that are not
 * C++ (Triton's, nvjet's, Tensile's) are unchanged.
 */
export function shortKernelName(name: string): string {
  const plain = name.replaceAll('(anonymous namespace)::', '').replaceAll('(anonymous namespace)', '');
  let depth = 0;
  let out = '';
  for (const char of plain) {
    if (char === '<') depth++;
    else if (char === '>' && depth > 0) depth--;
    else if (depth === 0) {
      if (char === '(') break;
      out += char;
    }
  }
  const scoped = out.trim().split(' ').at(-1) ?? '';
  const short = scoped.split('::').at(-1) ?? '';
  return short === '' ? name : short;
}
