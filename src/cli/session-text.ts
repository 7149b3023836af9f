import { colour } from '../render/terminal/colour.js';
import { formatQuantity, nbsp } from '../vocabulary/format.js';
import { hanging, inert, readingWidth, withPlainSpaces } from '../render/terminal/text.js';
import { subjectList } from '../vocabulary/subjects.js';
import { shellCommand } from '../model/shell.js';
import type { ListedSession } from '../session/list.js';
import type { Session } from '../session/open.js';
import { formatBytes } from '../session/storage-failure.js';

/** Truncates with an ellipsis and removes control characters of titles. */
export function fit(text: string, width: number): string {
  const plain = inert(text);
  if (plain.length <= width) return plain;
  return width <= 1 ? plain.slice(0, width) : `${plain.slice(0, width - 1)}…`;
}

/** Maximum width of the column of names and tags. */
const mostName = 20;

/** Newest last, next to the prompt. */
export function listText(sessions: ListedSession[], width: number): string {
  if (sessions.length === 0) return 'No sessions yet. Create one: inferscope profile\n';
  const names = sessions.map(({ name, tags }) => {
    const tagged = [name ?? '', ...tags.map((tag) => `#${tag}`)].join(' ').trim();
    return fit(tagged, Math.max(mostName, name?.length ?? 0));
  });
  // Ids and names are never truncated; a long one moves both to their own line.
  const mostId = Math.max(26, Math.floor(width * 0.4));
  const idWidth = Math.max(2, ...sessions.map(({ id }) => id.length).filter((length) => length <= mostId));
  const nameWidth = Math.max(4, ...names.map((name) => name.length).filter((length) => length <= mostName));
  const sizeWidth = 8;
  const titleWidth = Math.max(16, width - idWidth - nameWidth - sizeWidth - 6);
  const columns = (...[id, name, size, title]: [string, string, string, string]): string =>
    [id.padEnd(idWidth), name.padEnd(nameWidth), size.padStart(sizeWidth), title].join('  ').trimEnd();
  const line = (id: string, name: string, size: string, title: string): string =>
    id.length > idWidth || name.length > nameWidth
      ? `${`${id}  ${name}`.trimEnd()}\n${columns('', '', size, title)}`
      : columns(id, name, size, title);
  const rows = sessions.map((session, i) => {
    const { id, bytes, title, status, headline, broken } = session;
    if (broken)
      return `${line(id, names[i] ?? '', '-', '')}\n  ${colour.red('broken')} ${broken.code}: ${fit(broken.text, Math.max(40, width - 30))}`;
    const mark = status === 'complete' ? '' : `[${status}] `;
    return line(
      id,
      names[i] ?? '',
      bytes === null ? '-' : formatBytes(bytes),
      fit(`${mark}${[headline, title].filter((one) => one !== null).join(' · ')}`, titleWidth),
    );
  });
  return `${[colour.bold(line('ID', 'NAME', 'SIZE', 'HEADLINE · TITLE')), ...rows].join('\n')}\n`;
}

/** One screen about a session; --json has everything. */
export function showText(session: Session, bytes: number, columns: number): string {
  const width = readingWidth(columns);
  const { manifest, user } = session;
  const seconds = (Date.parse(manifest.ended_at) - Date.parse(manifest.started_at)) / 1000;
  const facts: [string, string][] = [
    ['title', manifest.title],
    ['name', user.name ?? '-'],
    ['tags', user.tags.join(', ') || '-'],
    ['kind', `${manifest.kind}, ${manifest.status}`],
    ['holds', subjectList(manifest.subjects)],
    // For captures from other tools only the time of import is known.
    [
      'started',
      manifest.kind === 'import'
        ? manifest.started_at
        : `${manifest.started_at}, ${formatQuantity(seconds, 's')}`,
    ],
    ...(manifest.kind === 'import' ? [['imported', manifest.ended_at] satisfies [string, string]] : []),
    ['written by', `inferscope ${session.toolVersion}`],
    ['folder', session.folder],
    ['size', formatBytes(bytes)],
    ...user.notes.map(
      ({ at, text }) => ['note', `${at.slice(0, 16)}${nbsp}${nbsp}${text}`] satisfies [string, string],
    ),
  ];
  const lines = [
    colour.bold(session.id),
    ...facts.flatMap(([label, value]) => hanging(`  ${label.padEnd(11)}`, inert(value), width)),
    // Not truncated, to be copied.
    `  ${'command'.padEnd(11)}${inert(shellCommand(manifest.command))}`,
  ];
  lines.push('', colour.bold('  captures'));
  for (const { capture_id, execution_id, tool } of manifest.captures) {
    const purpose =
      manifest.executions.find((one) => one.execution_id === execution_id)?.purpose ?? 'execution unknown';
    lines.push(
      `    ${capture_id.padEnd(18)}  ${tool.name}${tool.version ? ` ${tool.version}` : ''}  (${execution_id}: ${purpose})`,
    );
  }
  lines.push('', colour.bold('  tables'));
  for (const [table, files] of Object.entries(manifest.tables)) {
    const rows = files.reduce((sum, file) => sum + file.rows, 0);
    const size = formatBytes(files.reduce((sum, file) => sum + file.bytes, 0));
    lines.push(`    ${table.padEnd(18)}${String(rows).padStart(12)} rows  ${size.padStart(9)}`);
  }
  lines.push('', colour.bold('  artifacts'));
  for (const { path, kind, bytes: size } of manifest.artifacts) {
    lines.push(`    ${kind.padEnd(18)}${formatBytes(size).padStart(12)}       ${path}`);
  }
  for (const { severity, code, text } of session.issues)
    lines.push('', `  ${severity} ${code}`, ...hanging(' '.repeat(13), inert(text), width));
  return `${withPlainSpaces(lines.join('\n'))}\n`;
}
