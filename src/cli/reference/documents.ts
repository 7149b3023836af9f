import { z } from 'zod';
import { published, publishedNames } from '../../model/published.js';
import { figureUnit } from '../../vocabulary/sweep.js';
import { code, type Page, page, table } from './markdown.js';

/** The part of JSON Schema that zod writes. */
interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  pattern?: string;
  description?: string;
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | false;
  $defs?: Record<string, Schema>;
}

/** Fields are listed to this depth; the schema has the rest. */
const maxDepth = 2;

export function documentsPage(): Page {
  return page(
    'documents.md',
    'JSON documents',
    '`--json` prints one document on stdout: `{"schema": "inferscope/<name>/<major>.<minor>", "tool_version", "data", "issues"}`. An addition is a minor version, in parentheses after a field that was added in it, (1.4); readers reject another major version. Below are the fields of `data`; `inferscope schema <name>` prints the whole JSON Schema.',
    'A *figure* is `{"value", "unit", "n"?, "sd"?, "ci95"?, "source"}`, or `{"value": null, "reason": {"code", "text"}}` when it is missing. A figure states its unit; a plain number has it in its name. `[]` is a list, `?` a field that may be absent.',
    ...publishedNames.map(documentSection),
  );
}

function documentSection(name: (typeof publishedNames)[number]): string {
  const { schema: type, where } = published[name];
  const fullSchema = z.toJSONSchema(type, { io: 'input' }) as Schema;
  const variants = fullSchema.oneOf ?? fullSchema.anyOf;
  const data = fullSchema.properties?.['data'] ?? fullSchema;
  const reader = new Reader(fullSchema.$defs ?? {});
  const rows = variants
    ? variants.flatMap((variant) =>
        reader.fields(variant, `${String(variant.properties?.['type']?.const)}: `, maxDepth - 1),
      )
    : reader.fields(data, '', maxDepth);
  const schema = fullSchema.properties?.['schema']?.pattern?.replaceAll(/[\^$\\]/g, '').replace('.d+', '.x');
  const id = schema === undefined ? '' : `${code(schema)}. `;
  return `## ${code(name)}\n\n${id}Where: ${where}.\n\n${table(['field', 'type', 'unit', 'meaning'], rows)}`;
}

class Reader {
  constructor(private readonly definitions: Record<string, Schema>) {}

  fields(from: Schema, prefix: string, depth: number): string[][] {
    const { properties = {} } = this.resolved(from);
    const required = new Set((this.resolved(from) as { required?: string[] }).required ?? []);
    return Object.entries(properties).flatMap(([name, schema]) => {
      const path = `${prefix}${name}`;
      const resolved = this.resolved(schema);
      const inner = this.inner(resolved);
      const row = [
        code(`${path}${inner?.list ? '[]' : ''}${required.has(name) ? '' : '?'}`),
        `${this.typeOf(resolved)}${isNullable(schema) ? ' or null' : ''}`,
        unitOf(name, resolved),
        resolved.description ?? '',
      ];
      const below =
        inner && depth > 1 ? this.fields(inner.fields, `${path}${inner.list ? '[]' : ''}.`, depth - 1) : [];
      return [row, ...below];
    });
  }

  private resolved(schema: Schema): Schema {
    if (schema.$ref) return this.resolved(this.definitions[schema.$ref.split('/').at(-1)!] ?? {});
    const schemas = (schema.anyOf ?? []).filter(({ type }) => type !== 'null');
    return schemas.length === 1 ? { ...this.resolved(schemas[0]!), ...descriptionOf(schema) } : schema;
  }

  /** The object with fields to list below a field: the field itself, or the entries of its list. */
  private inner(schema: Schema): { fields: Schema; list: boolean } | null {
    if (isFigure(schema)) return null;
    const item = schema.items ? this.resolved(schema.items) : null;
    if (item?.properties && !isFigure(item)) return { fields: item, list: true };
    return schema.properties ? { fields: schema, list: false } : null;
  }

  typeOf(schema: Schema): string {
    const resolved = this.resolved(schema);
    if (isFigure(resolved)) return 'figure';
    if (resolved.const !== undefined) return code(JSON.stringify(resolved.const));
    if (resolved.enum) return resolved.enum.map((value) => code(String(value))).join(', ');
    if (resolved.items) return `list of ${this.typeOf(resolved.items)}`;
    if (resolved.properties) return 'object';
    if (resolved.additionalProperties) return `map of ${this.typeOf(resolved.additionalProperties)}`;
    const choices = resolved.anyOf ?? resolved.oneOf;
    if (choices) return [...new Set(choices.map((choice) => this.typeOf(choice)))].join(' or ');
    return [resolved.type ?? 'any'].flat().join(' or ');
  }
}

const isNullable = ({ anyOf }: Schema): boolean =>
  anyOf?.length === 2 && anyOf.some(({ type }) => type === 'null');

const descriptionOf = ({ description }: Schema): Schema => (description === undefined ? {} : { description });

function isFigure({ properties, anyOf }: Schema): boolean {
  const has = (schema: Schema) => schema.properties !== undefined && 'value' in schema.properties;
  if (anyOf) return anyOf.length === 2 && anyOf.every(has);
  return properties !== undefined && 'value' in properties && 'source' in properties;
}

/** Unit of a plain number, from the end of its name. */
function unitOf(name: string, { type }: Schema): string {
  if (type !== 'number' && type !== 'integer') return '';
  const { unit } = figureUnit(name.replace(/_(?:mean|sd|p\d+|ci95_low|ci95_high|low|high)$/, ''));
  return unit === 'ratio' ? '0 to 1' : unit;
}
