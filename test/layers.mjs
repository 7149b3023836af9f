// Checks that each folder of src/ imports only from the folders listed for it, and that files do not import each other in circles. All imports
// count: static, types, `export from` and lazy `import()`. There are no exceptions.
//
//   node test/layers.mjs
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseSync, Visitor } from 'oxc-parser';

const base = ['model', 'vocabulary'];
const analysisImports = [...base, 'llm', 'hardware', 'session'];
const formatImports = [...base, 'import', 'import/attribution'];
/**
 * A file belongs to the longest path here that contains it; it may import within that path and from the listed paths. `*` means everything
 * below.
 */
const layers = {
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
  facts: analysisImports,
  advice: [...analysisImports, 'facts'],
  compare: [...analysisImports, 'facts'],
  ask: [...analysisImports, 'facts', 'advice', 'compare'],
  export: [...base, 'session', 'facts'],
  views: base,
  render: [...base, 'views'],
  'render/charts': [...base, 'views', 'render'],
  'render/client': [...base, 'views', 'render', 'render/charts'],
  'render/terminal': [...base, 'views', 'render'],
  'render/html': [...base, 'views', 'render', 'render/charts'],
  record: [...base, 'hardware', 'session', 'import'],
  ui: [...analysisImports, 'facts', 'advice', 'compare', 'export', 'views', 'render*'],
  'ui/client': [...base, 'render', 'ui'],
  cli: ['*'],
};
const src = join(import.meta.dirname, '../src');
// Each other folder of import/ is one format.
for (const entry of readdirSync(join(src, 'import'), { withFileTypes: true })) {
  const { name } = entry;
  if (entry.isDirectory() && name !== 'attribution' && name !== 'kernel-classes')
    layers[`import/${name}`] = formatImports;
}
/** Libraries that only one folder may import, and this folder. */
const foldersOfLibraries = {
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
    .map((path) => [path, [...new Set(importsOf(path).map((name) => resolveImport(path, name)))]]),
);
const violations = [
  ...findForbiddenImports().sort(),
  ...findCircles().map((files) => `circle of ${files.join(', ')}`),
];
if (violations.length > 0) {
  process.stderr.write(`Imports against the layers (test/layers.mjs):\n  ${violations.join('\n  ')}\n`);
  process.exitCode = 1;
}

/** Modules that a file imports, as written: static, `export from`, lazy and types. */
function importsOf(path) {
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
function resolveImport(from, name) {
  if (!name.startsWith('.')) return name;
  const path = join(from, '..', name).replaceAll('\\', '/').replace(/\.js$/, '');
  return [`${path}.ts`, `${path}.tsx`].find((one) => existsSync(join(src, one))) ?? path;
}

function layerOf(path) {
  const within = Object.keys(layers).filter((layer) => path === layer || path.startsWith(`${layer}/`));
  return within.sort((a, b) => b.length - a.length)[0];
}

function findForbiddenImports() {
  return [...imports].flatMap(([path, targets]) =>
    targets.filter((target) => !isAllowed(path, target)).map((target) => `${path} -> ${target}`),
  );
}

function isAllowed(path, target) {
  const onlyFolder = Object.entries(foldersOfLibraries).find(([library]) => target.startsWith(library))?.[1];
  if (onlyFolder !== undefined) return path.startsWith(onlyFolder);
  const to = layerOf(target);
  const from = layerOf(path);
  if (from === undefined)
    throw new Error(`test/layers.mjs does not list src/${path}: add its folder to layers.`);
  if (to === undefined || to === from) return true;
  return layers[from].some((one) => (one.endsWith('*') ? to.startsWith(one.slice(0, -1)) : one === to));
}

/** Files that import each other in a circle (Tarjan's algorithm), a sorted list per circle. */
function findCircles() {
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
