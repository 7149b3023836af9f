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
