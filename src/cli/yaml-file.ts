import { closest } from 'fastest-levenshtein';
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, type Document } from 'yaml';
import { z } from 'zod';
import type { InferscopeError } from '../model/errors.js';
import { nearest } from '../model/nearest.js';

/** An error in a YAML file: position (`:3:5`, or empty), message and fix. */
export interface YamlFault {
  where: string;
  text: string;
  fix: string;
  /** Nearest known key of an unknown key, or the missing key: both may be the same misspelling. */
  key?: { is: 'misspelled' | 'missing'; path: string };
}

type Path = readonly (string | number)[];

/** A parsed file; `where` gives `:line:column` of a path, or of its nearest existing parent. */
export interface YamlFile<T> {
  value: T;
  where: (path: Path) => string;
}

/**
 * Parses YAML and checks it against a schema; unknown keys of strict objects are rejected with the nearest known one.
 * @throws the error that `fail` creates from the faults, in file order
 */
export function readYaml<S extends z.ZodType>(
  text: string,
  schema: S,
  fail: (faults: [YamlFault, ...YamlFault[]]) => InferscopeError,
): YamlFile<z.infer<S>> {
  const lines = new LineCounter();
  const parsed = parseDocument(text, { lineCounter: lines });
  const placeOf = (offset: number | null): string => {
    if (offset === null) return '';
    const { line, col } = lines.linePos(offset);
    return `:${line}:${col}`;
  };
  const [syntax] = parsed.errors;
  if (syntax) {
    const [message = syntax.code] = syntax.message.split('\n');
    const fix = 'Fix the YAML there, or remove the file.';
    // The parser repeats the position.
    const text = message.replace(/ at line \d+, column \d+:?$/, '');
    throw fail([{ where: placeOf(syntax.pos[0]), text, fix }]);
  }
  const raw = plainValue(parsed);
  if (raw instanceof Error)
    throw fail([{ where: '', text: raw.message, fix: 'Replace the alias (*name) by its content.' }]);
  const checked = schema.safeParse(raw);
  const where = (path: Path) => placeOf(offsetOf(parsed, path));
  if (checked.success) return { value: checked.data, where };
  const faults = checked.error.issues
    .flatMap((issue) => withinUnion(issue, raw))
    .flatMap((issue) => faultsOf(issue, { schema, raw, parsed, placeOf }));
  const inOrder = withoutEchoes(faults).toSorted((a, b) => position(a) - position(b));
  throw fail(inOrder as [YamlFault, ...YamlFault[]]);
}

/** The parsed document, or the error of its aliases: no anchor, recursive, or too many. */
function plainValue(parsed: Document): unknown {
  try {
    const value: unknown = parsed.toJS() ?? {};
    // JSON.stringify visits the whole document first and throws on a cycle.
    JSON.stringify(value);
    return value;
  } catch (error) {
    if (error instanceof ReferenceError) return error;
    return new Error('An alias refers to a value that contains the alias itself.');
  }
}

/** A misspelled key is one error, not an unknown and a missing key. */
function withoutEchoes(faults: readonly YamlFault[]): YamlFault[] {
  const misspelledKeys = new Set(faults.flatMap(({ key }) => (key?.is === 'misspelled' ? [key.path] : [])));
  const remaining = faults.filter(({ key }) => key?.is !== 'missing' || !misspelledKeys.has(key.path));
  return remaining.length > 0 ? remaining : [...faults];
}

const position = ({ where }: YamlFault): number => {
  const [, line = '0', column = '0'] = where.split(':');
  return Number(line) * 1e4 + Number(column);
};

interface Checked {
  schema: z.ZodType;
  raw: unknown;
  parsed: Document;
  placeOf: (offset: number | null) => string;
}

/** For "a number or a list" report the errors of the list if a list was written. */
function withinUnion(issue: z.core.$ZodIssue, raw: unknown): z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union' || !Array.isArray(valueAt(raw, issue.path as Path))) return [issue];
  const listErrors = issue.errors.find((errors) => errors.every(({ path }) => path.length > 0));
  return listErrors
    ? listErrors.map((nested) => ({ ...nested, path: [...issue.path, ...nested.path] }))
    : [issue];
}

function faultsOf(issue: z.core.$ZodIssue, { schema, raw, parsed, placeOf }: Checked): YamlFault[] {
  const path = issue.path as Path;
  if (issue.code === 'unrecognized_keys') {
    const known = Object.keys(shapeAt(schema, path));
    return issue.keys.map((key) => {
      const meant = nearest(key, known);
      const all = `Known keys: ${known.join(', ')}.`;
      return {
        where: placeOf(offsetOf(parsed, [...path, key])),
        text: `unknown key "${pathWords([...path, key])}"`,
        fix: meant === null ? all : `Did you mean "${meant}"? ${all}`,
        ...(meant === null ? {} : { key: { is: 'misspelled' as const, path: pathWords([...path, meant]) } }),
      };
    });
  }
  const found = valueAt(raw, path);
  const where = placeOf(offsetOf(parsed, path));
  if (found === undefined && path.length > 0) {
    const words = pathWords(path);
    const fix = `Add ${path.at(-1)}: ${exampleOf(fieldAt(schema, path))}.`;
    return [{ where, text: `${words} is missing`, fix, key: { is: 'missing', path: words } }];
  }
  const field = fieldAt(schema, path);
  const example = exampleOf(field, found);
  const key = path.at(-1);
  const text = `${pathWords(path) || 'the file'}: expected ${expectedWords(field, issue)}, found ${foundWords(found)}`;
  if (key === undefined) return [{ where, text, fix: 'Write it as keys and values.' }];
  return [
    {
      where,
      text,
      fix: `Write ${typeof key === 'number' ? `${example} there` : `${key}: ${example}`}, or remove it.`,
    },
  ];
}

/** models[0].input_lengths[1] */
const pathWords = (path: Path): string =>
  path.reduce<string>(
    (words, part) => (typeof part === 'number' ? `${words}[${part}]` : words ? `${words}.${part}` : part),
    '',
  );

function valueAt(value: unknown, path: Path): unknown {
  let found = value;
  for (const part of path) {
    if (typeof found !== 'object' || found === null) return undefined;
    found = (found as Record<string | number, unknown>)[part];
  }
  return found;
}

const foundWords = (found: unknown): string =>
  found === null
    ? 'nothing'
    : Array.isArray(found)
      ? `a list (${JSON.stringify(found).slice(0, 60)})`
      : typeof found === 'object'
        ? 'a mapping'
        : typeof found === 'string'
          ? `the text ${JSON.stringify(found.length > 60 ? `${found.slice(0, 60)}…` : found)}`
          : String(found);

/** Offset of the key or list entry at a path, or of its nearest existing parent. */
function offsetOf(parsed: Document, path: Path): number | null {
  let node: unknown = parsed.contents;
  let offset = startOf(node);
  for (const part of path) {
    if (isAlias(node)) node = node.resolve(parsed);
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(part));
      if (!pair) break;
      offset = startOf(pair.key);
      node = pair.value;
    } else if (isSeq(node) && typeof part === 'number' && part < node.items.length) {
      node = node.items[part];
      offset = startOf(node) ?? offset;
    } else break;
  }
  return offset;
}

const startOf = (node: unknown): number | null => (isNode(node) ? (node.range?.[0] ?? null) : null);

function unwrapped(schema: z.ZodType): z.ZodType {
  let inner = schema;
  while (
    inner instanceof z.ZodOptional ||
    inner instanceof z.ZodNullable ||
    inner instanceof z.ZodDefault ||
    inner instanceof z.ZodPrefault
  )
    inner = inner.unwrap() as z.ZodType;
  return inner;
}

/** Schema at a path; null if the schema has none there. */
function fieldAt(schema: z.ZodType, path: Path): z.ZodType | null {
  let field: z.ZodType | null = schema;
  for (const part of path) {
    const inner: z.ZodType = unwrapped(field);
    if (inner instanceof z.ZodObject)
      field = (inner.shape as Record<string, z.ZodType>)[String(part)] ?? null;
    else if (inner instanceof z.ZodArray) field = inner.element as z.ZodType;
    else if (inner instanceof z.ZodRecord) field = inner.valueType as z.ZodType;
    else if (inner instanceof z.ZodUnion) {
      const list = (inner.options as z.ZodType[]).find((option) => unwrapped(option) instanceof z.ZodArray);
      field =
        list && typeof part === 'number' ? ((unwrapped(list) as z.ZodArray).element as z.ZodType) : null;
    } else field = null;
    if (field === null) return null;
  }
  return unwrapped(field);
}

function shapeAt(schema: z.ZodType, path: Path): Record<string, unknown> {
  const field = fieldAt(schema, path);
  return field instanceof z.ZodObject ? field.shape : {};
}

function typeWords(field: z.ZodType | null): string {
  if (field instanceof z.ZodUnion) {
    const options = (field.options as z.ZodType[]).map(unwrapped);
    const single = options.find((option) => !(option instanceof z.ZodArray)) ?? null;
    const list = options.find((option) => option instanceof z.ZodArray);
    const words = [...new Set(options.filter((option) => option !== list).map(typeWords))].join(' or ');
    return list && single ? `${words}, or a list of them` : words;
  }
  if (field instanceof z.ZodArray) return `a list: ${typeWords(unwrapped(field.element as z.ZodType))} each`;
  if (field instanceof z.ZodEnum) return `one of ${field.options.join(', ')}`;
  if (field instanceof z.ZodNumber) return numberWords(field);
  if (field instanceof z.ZodObject || field instanceof z.ZodRecord) return 'a mapping (key: value)';
  if (field instanceof z.ZodBoolean) return 'true or false';
  return 'a text';
}

function numberWords(field: z.ZodNumber): string {
  const { type, minimum, exclusiveMinimum, maximum } = z.toJSONSchema(field);
  const what = type === 'integer' ? 'a whole number' : 'a number';
  const above = exclusiveMinimum === undefined ? '' : ` above ${exclusiveMinimum}`;
  const from = minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? '' : ` from ${minimum}`;
  const to = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? '' : ` up to ${maximum}`;
  return `${what}${above || from}${to}`;
}

/** What the schema expects at the place of the error; zod's message if it has nothing there. */
function expectedWords(field: z.ZodType | null, issue: z.core.$ZodIssue): string {
  if (issue.code === 'too_small' && issue.origin === 'array') return 'at least one entry';
  return field === null ? issue.message : typeWords(field);
}

function exampleOf(field: z.ZodType | null, found?: unknown): string {
  if (field instanceof z.ZodUnion) {
    const options = (field.options as z.ZodType[]).map(unwrapped);
    return exampleOf(options.find((option) => option instanceof z.ZodArray) ?? options[0] ?? null);
  }
  if (field instanceof z.ZodArray) {
    const inner = unwrapped(field.element as z.ZodType);
    return inner instanceof z.ZodObject
      ? '[{…}]'
      : `[${exampleOf(inner)}${inner instanceof z.ZodNumber ? ', 16' : ''}]`;
  }
  if (field instanceof z.ZodNumber) return field.maxValue !== null && field.maxValue <= 1 ? '0.9' : '8';
  if (field instanceof z.ZodEnum) {
    const options = field.options.map(String);
    return typeof found === 'string' ? closest(found, options) : (options[0] ?? '');
  }
  if (field instanceof z.ZodObject || field instanceof z.ZodRecord) return '{…}';
  if (field instanceof z.ZodBoolean) return 'true';
  return 'some text';
}
