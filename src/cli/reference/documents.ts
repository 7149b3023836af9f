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
const depths = 2;

export function documentsPage(): Page {
  return page(
    'documents.md',
    'JSON documents',
    '`--json` prints one document on stdout: `{"schema": "inferscope/<name>/<major>.<minor>", "tool_version", "data", "issues"}`. An addition is a minor version; readers reject a newer major version. Below are the fields of `data`; `inferscope schema <name>` prints the whole JSON Schema.',
    'A *figure* is `{"value", "unit", "n"?, "sd"?, "ci95"?, "source"}`, or `{"value": null, "reason": {"code", "text"}}` when it is missing. A figure states its unit; a plain number has it in its name. `[]` is a list, `?` a field that may be absent.',
    ...publishedNames.map(documentPart),
  );
}

function documentPart(name: (typeof publishedNames)[number]): string {
  const { schema: type, where } = published[name];
  const whole = z.toJSONSchema(type, { io: 'input' }) as Schema;
  const variants = whole.oneOf ?? whole.anyOf;
  const data = whole.properties?.['data'] ?? whole;
  const read = new Reader(whole.$defs ?? {});
  const rows = variants
    ? variants.flatMap((one) => read.fields(one, `${String(one.properties?.['type']?.const)}: `, depths - 1))
    : read.fields(data, '', depths);
  const schema = whole.properties?.['schema']?.pattern?.replaceAll(/[\^$\\]/g, '').replace('.d+', '.x');
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
      const own = this.resolved(schema);
      const inner = this.inner(own);
      const row = [
        code(`${path}${inner?.list ? '[]' : ''}${required.has(name) ? '' : '?'}`),
        `${this.typeOf(own)}${isNullable(schema) ? ' or null' : ''}`,
        unitOf(name, own),
        own.description ?? '',
      ];
      const below =
        inner && depth > 1 ? this.fields(inner.of, `${path}${inner.list ? '[]' : ''}.`, depth - 1) : [];
      return [row, ...below];
    });
  }

  private resolved(schema: Schema): Schema {
    if (schema.$ref) return this.resolved(this.definitions[schema.$ref.split('/').at(-1)!] ?? {});
    const others = (schema.anyOf ?? []).filter(({ type }) => type !== 'null');
    return others.length === 1 ? { ...this.resolved(others[0]!), ...described(schema) } : schema;
  }

  /** The object with fields to list below a field: the field itself, or the entries of its list. */
  private inner(schema: Schema): { of: Schema; list: boolean } | null {
    if (isFigure(schema)) return null;
    const item = schema.items ? this.resolved(schema.items) : null;
    if (item?.properties && !isFigure(item)) return { of: item, list: true };
    return schema.properties ? { of: schema, list: false } : null;
  }

  typeOf(schema: Schema): string {
    const own = this.resolved(schema);
    if (isFigure(own)) return 'figure';
    if (own.const !== undefined) return code(JSON.stringify(own.const));
    if (own.enum) return own.enum.map((one) => code(String(one))).join(', ');
    if (own.items) return `list of ${this.typeOf(own.items)}`;
    if (own.properties) return 'object';
    if (own.additionalProperties) return `map of ${this.typeOf(own.additionalProperties)}`;
    const choices = own.anyOf ?? own.oneOf;
    if (choices) return [...new Set(choices.map((one) => this.typeOf(one)))].join(' or ');
    return [own.type ?? 'any'].flat().join(' or ');
  }
}

const isNullable = ({ anyOf }: Schema): boolean =>
  anyOf?.length === 2 && anyOf.some(({ type }) => type === 'null');

const described = ({ description }: Schema): Schema => (description === undefined ? {} : { description });

function isFigure({ properties, anyOf }: Schema): boolean {
  const has = (one: Schema) => one.properties !== undefined && 'value' in one.properties;
  if (anyOf) return anyOf.length === 2 && anyOf.every(has);
  return properties !== undefined && 'value' in properties && 'source' in properties;
}

/** Unit of a plain number, from the end of its name. */
function unitOf(name: string, { type }: Schema): string {
  if (type !== 'number' && type !== 'integer') return '';
  const { unit } = figureUnit(name.replace(/_(?:mean|sd|p\d+|ci95_low|ci95_high|low|high)$/, ''));
  return unit === 'ratio' ? '0 to 1' : unit;
}
