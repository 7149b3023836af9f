/** Things by the `kernelKey` of their kernel's name. */
export function byKernelKey<T>(things: readonly T[], nameOf: (thing: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const thing of things) {
    const key = kernelKey(nameOf(thing));
    groups.set(key, [...(groups.get(key) ?? []), thing]);
  }
  return groups;
}

/** A demangled name without "void", anonymous namespaces, template arguments and parameters. */
export function bareKernelName(name: string): string {
  let depth = 0;
  let bare = '';
  for (const letter of name
    .replace(/^void /, '')
    .replaceAll(/(?:\(anonymous namespace\)|<unnamed>)::/g, '')) {
    if (letter === '<' || letter === '(') depth++;
    if (depth === 0) bare += letter;
    if (letter === '>' || letter === ')') depth = Math.max(0, depth - 1);
  }
  return bare.trim() === '' ? name : bare.trim();
}

const builtin = '(?:(?:un)?signed )?(?:bool|char|short|int|long long|long)';
const casts = new RegExp(`\\(${builtin}\\)(?=-?\\d)`, 'g');

/**
 * A key that is equal for one kernel in Nsight Systems, Nsight Compute and the PyTorch profiler, which demangle differently:
 * `(int)4`, `2ul` and `(bool)1` for `4`, `2` and `true`, `[lambda(float) (instance 1)]` for `{lambda(float)#1}`, `T1` for the type
 * of a parameter, spaces, the place of `const`, return types, anonymous namespaces, and ncu leaves out PyTorch's inline namespace.
 * Parameters after template arguments are left out: the arguments determine them.
 */
export function kernelKey(name: string): string {
  const normalized = name
    .replaceAll(/\(anonymous namespace\)|<unnamed>/g, '_')
    .replaceAll(/\[lambda\(([^()[\]]*)\) \(instance (\d+)\)\]/g, '{lambda($1)#$2}')
    .replaceAll(casts, '')
    .replaceAll(/\b(\d+)u?l{0,2}\b/g, '$1')
    .replaceAll(/\btrue\b/g, '1')
    .replaceAll(/\bfalse\b/g, '0')
    .replaceAll(/\bconst\b/g, '')
    .replaceAll(/\bvoid (?=[\w(])/g, '')
    .replaceAll(/\bat::native::/g, 'at::')
    .replaceAll(/\s/g, '');
  let key = '';
  // Depth of parentheses within parameters that are left out.
  let depth = 0;
  for (const letter of normalized) {
    if (letter === '(' && (depth > 0 || key.endsWith('>'))) depth++;
    else if (letter === ')' && depth > 0) depth--;
    else if (depth === 0) key += letter;
  }
  return key;
}
