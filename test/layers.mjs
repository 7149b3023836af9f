// Checks which folder of src/ imports which, over all imports: static, types, `export from` and lazy `import()`. Files must not import each
// other in circles. There are no exceptions.
//
//   node test/layers.mjs
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseSync, Visitor } from 'oxc-parser';

const base = ['model', 'vocabulary'];
const facts = [...base, 'llm', 'hardware', 'session'];
const format = [...base, 'import', 'import/attribution'];
/**
 * A file belongs to the longest path here that contains it; it may import within that path and from the listed paths. `*` means everything
 * below.
 */
const rooms = {
  model: [],
  vocabulary: ['model'],
  llm: base,
  hardware: base,
  load: base,
  session: base,
  import: base,
  'import/attribution': [...base, 'import'],
  'import/index.ts': [...base, 'import*'],
  'import/identify.ts': [...base, 'import*'],
  engines: [...base, 'llm'],
  'engines/model-files': [...base, 'llm', 'engines*'],
  'engines/openai': [...base, 'llm', 'engines', 'load'],
  capture: [...base, 'llm', 'hardware', 'engines*'],
  facts,
  advice: [...facts, 'facts'],
  compare: [...facts, 'facts'],
  ask: [...facts, 'facts', 'advice', 'compare'],
  export: [...base, 'session'],
  views: base,
  render: [...base, 'views'],
  'render/charts': [...base, 'views', 'render'],
  'render/client': ['views', 'render', 'render/charts'],
  'render/terminal': [...base, 'views', 'render'],
  'render/html': [...base, 'views', 'render', 'render/charts'],
  record: [...base, 'hardware', 'session', 'import'],
  ui: [...facts, 'facts', 'advice', 'compare', 'export', 'views', 'render*'],
  'ui/client': [...base, 'render', 'ui'],
  cli: ['*'],
};
const src = join(import.meta.dirname, '../src');
// Each other folder of import/ is one format.
for (const { name } of readdirSync(join(src, 'import'), { withFileTypes: true }).filter((one) =>
  one.isDirectory(),
))
  if (name !== 'attribution' && name !== 'kernel-classes') rooms[`import/${name}`] = format;
/** Libraries that only one folder may import. */
const homes = {
  '@duckdb/': 'session/',
  'onnxruntime-': 'engines/onnx/',
  echarts: 'render/',
  '@codemirror/': 'ui/client/',
  '@ai-sdk/': 'ask/',
  '@huggingface/gguf': 'engines/model-files/find-model-files.ts',
};

const imports = new Map(
  readdirSync(src, { recursive: true })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => /\.tsx?$/.test(path) && !/\.test\.tsx?$|(^|\/)test-[^/]*\.ts$/.test(path))
    .map((path) => [path, [...new Set(importedBy(path).map((one) => resolved(path, one)))]]),
);
const found = [...wrongImports().sort(), ...circles().map((files) => `circle of ${files.join(', ')}`)];
if (found.length > 0) {
  process.stderr.write(`Imports against the layers (test/layers.mjs):\n  ${found.join('\n  ')}\n`);
  process.exitCode = 1;
}

/** Modules that a file imports, as written: static, `export from`, lazy and types. */
function importedBy(path) {
  const names = [];
  const source = (node) => {
    if (typeof node.source?.value === 'string') names.push(node.source.value);
  };
  new Visitor({
    ImportDeclaration: source,
    ExportNamedDeclaration: source,
    ExportAllDeclaration: source,
    ImportExpression: source,
    TSImportType: source,
  }).visit(parseSync(path, readFileSync(join(src, path), 'utf8')).program);
  return names;
}

/** The path of a file in src/, or the name of a library. */
function resolved(from, name) {
  if (!name.startsWith('.')) return name;
  const path = join(from, '..', name).replaceAll('\\', '/').replace(/\.js$/, '');
  return [`${path}.ts`, `${path}.tsx`].find((one) => existsSync(join(src, one))) ?? path;
}

function roomOf(path) {
  const within = Object.keys(rooms).filter((room) => path === room || path.startsWith(`${room}/`));
  return within.sort((a, b) => b.length - a.length)[0];
}

function wrongImports() {
  return [...imports].flatMap(([path, targets]) =>
    targets.filter((target) => !allowed(path, target)).map((target) => `${path} -> ${target}`),
  );
}

function allowed(path, target) {
  const home = Object.entries(homes).find(([library]) => target.startsWith(library))?.[1];
  if (home !== undefined) return path.startsWith(home);
  const to = roomOf(target);
  const from = roomOf(path);
  if (from === undefined) throw new Error(`test/layers.mjs has no room for src/${path}: add it to the list.`);
  if (to === undefined || to === from) return true;
  return rooms[from].some((one) => (one.endsWith('*') ? to.startsWith(one.slice(0, -1)) : one === to));
}

/** Files that import each other in a circle (Tarjan's algorithm), a sorted list per circle. */
function circles() {
  const order = new Map();
  const lowest = new Map();
  const open = [];
  const groups = [];
  const visit = (path) => {
    order.set(path, order.size);
    lowest.set(path, order.get(path));
    open.push(path);
    for (const next of imports.get(path) ?? []) {
      if (!order.has(next)) visit(next);
      if (open.includes(next)) lowest.set(path, Math.min(lowest.get(path), lowest.get(next)));
    }
    if (lowest.get(path) !== order.get(path)) return;
    const group = open.splice(open.indexOf(path)).sort();
    if (group.length > 1) groups.push(group);
  };
  for (const path of imports.keys()) if (!order.has(path)) visit(path);
  return groups.sort((a, b) => (a[0] < b[0] ? -1 : 1));
}
