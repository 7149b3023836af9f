import type { Document } from '../model/document.js';
import type { ListedSession, SessionDetails, SessionsVerified } from '../model/documents/session.js';
import { shellCommand } from '../model/shell.js';
import { subjectList } from '../vocabulary/subjects.js';
import { modelFacts } from './model-facts.js';
import type { Block, Section, Table, Text, View } from './block.js';

const bytes = (n: number): Text => ({ n, unit: 'B' });

/** Newest last, next to the prompt; a session is listed by its name, or by its id if it has none. */
export function sessionListBlocks(sessions: readonly ListedSession[]): Block[] {
  if (sessions.length === 0)
    return [{ type: 'text', text: ['No sessions yet. Create one: ', { code: 'inferscope profile' }] }];
  const broken = sessions.filter((session) => session.broken !== null);
  return [
    {
      type: 'table',
      title: 'Sessions',
      columns: [
        { id: 'name', head: 'SESSION' },
        { id: 'bytes', head: 'SIZE', numeric: true },
        { id: 'headline', head: 'HEADLINE · TITLE', wraps: true, endCut: true },
      ],
      rows: sessions.map((session) => ({
        cells: [
          [session.name ?? session.id, ...session.tags.map((tag) => `#${tag}`)].join(' '),
          session.bytes === null ? { missing: 'unknown' } : bytes(session.bytes),
          leadOf(session),
        ],
      })),
    },
    {
      type: 'issues',
      issues: broken.map(({ id, broken: why }) => ({
        code: why!.code,
        severity: 'error' as const,
        text: `${id} is broken (${why!.code}): ${why!.text}`,
      })),
    },
  ];
}

function leadOf({ status, headline, title, broken }: ListedSession): Text {
  if (broken) return { text: `broken ${broken.code}`, tone: 'fault' };
  const mark = statusMark(status);
  return `${mark === '' ? '' : `${mark} `}${[headline, title].filter((text) => text !== null).join(' · ')}`;
}

/** "[failed]" in lists of sessions; "" for a complete one. */
export const statusMark = (status: string | null): string =>
  status === 'complete' || status === null ? '' : `[${status}]`;

/** Contents of a session; its document has everything. */
export function sessionShowView(document: Document<SessionDetails>): View {
  const { manifest, user, folder, written_by, bytes: size, import_issues } = document.data;
  const imported = manifest.kind === 'import';
  const seconds = (Date.parse(manifest.ended_at) - Date.parse(manifest.started_at)) / 1000;
  const facts: [string, Text][] = [
    ['title', manifest.title.replaceAll(/\s*\n\s*/g, ' ')],
    ['name', user.name ?? '–'],
    ['tags', user.tags.join(', ') || '–'],
    ['kind', `${manifest.kind}, ${manifest.status}`],
    ['contains', subjectList(manifest.subjects)],
    // For captures from other tools only the time of import is known.
    ['started', imported ? manifest.started_at : [`${manifest.started_at}, `, { n: seconds, unit: 's' }]],
    ...(imported ? [['imported', manifest.ended_at] satisfies [string, Text]] : []),
    ['written by', `inferscope ${written_by}`],
    ['folder', { code: folder }],
    ['size', bytes(size)],
    ...user.notes.map(({ at, text }) => ['note', `${at.slice(0, 16)}  ${text}`] satisfies [string, Text]),
  ];
  return {
    command: 'session show',
    title: manifest.id,
    document,
    session: manifest,
    lead: [
      {
        type: 'facts',
        items: [...facts.map(([name, text]) => ({ name, text })), ...modelFacts(manifest.workload)],
      },
      { type: 'issues', issues: import_issues },
    ],
    sections: [
      // Not cut, so that it can be copied.
      {
        id: 'command',
        title: 'Command',
        blocks: [{ type: 'lines', text: shellCommand(manifest.command) }],
      },
      ...contents(document.data),
    ],
  };
}

function contents({ manifest }: SessionDetails): Section[] {
  const sum = (files: readonly { rows: number; bytes: number }[], key: 'rows' | 'bytes') =>
    files.reduce((total, file) => total + file[key], 0);
  const purposeOf = (id: string) =>
    manifest.executions.find(({ execution_id }) => execution_id === id)?.purpose ?? 'execution unknown';
  const tables: [string, Table][] = [
    [
      'captures',
      {
        type: 'table',
        title: 'Captures',
        columns: [
          { id: 'capture', head: 'capture' },
          { id: 'tool', head: 'tool' },
          { id: 'execution', head: 'execution', wraps: true },
          { id: 'purpose', head: 'purpose', drop: 0 },
        ],
        rows: manifest.captures.map(({ capture_id, execution_id, tool }) => ({
          cells: [
            capture_id,
            `${tool.name}${tool.version ? ` ${tool.version}` : ''}`,
            execution_id,
            purposeOf(execution_id),
          ],
        })),
      },
    ],
    [
      'tables',
      {
        type: 'table',
        title: 'Tables',
        columns: [
          { id: 'table', head: 'table' },
          { id: 'rows', head: 'rows', numeric: true },
          { id: 'bytes', head: 'size', numeric: true },
        ],
        rows: Object.entries(manifest.tables).map(([table, files]) => ({
          cells: [table, { count: sum(files, 'rows') }, bytes(sum(files, 'bytes'))],
        })),
      },
    ],
    [
      'artifacts',
      {
        type: 'table',
        title: 'Artifacts',
        columns: [
          { id: 'kind', head: 'kind' },
          { id: 'bytes', head: 'size', numeric: true },
          { id: 'path', head: 'path', wraps: true },
        ],
        rows: manifest.artifacts.map(({ path, kind, bytes: size }) => ({
          cells: [kind, bytes(size), { code: path }],
        })),
      },
    ],
  ];
  return tables
    .filter(([, { rows }]) => rows.length > 0)
    .map(([id, table]) => ({ id, title: String(table.title), blocks: [table] }));
}

/** Every session, with each damaged file. */
export function sessionVerifyView(document: Document<SessionsVerified>): View {
  const { sessions } = document.data;
  const bad = sessions.filter(({ ok }) => !ok);
  return {
    command: 'session verify',
    title: bad.length === 0 ? 'no damage' : `${bad.length} of ${sessions.length} damaged`,
    document,
    session: { id: null, started_at: '' },
    lead: [
      {
        type: 'facts',
        items: sessions.map(({ id, ok, files }) => ({
          name: id,
          text: ok ? ['ok, ', { count: files.length, unit: 'files' }] : { text: 'DAMAGED', tone: 'fault' },
        })),
      },
    ],
    sections: bad.map(({ id, files }) => ({
      id,
      title: id,
      blocks: [
        {
          type: 'facts',
          items: files
            .filter(({ state }) => state !== 'ok')
            .map(({ path, state, detail }) => ({
              name: state,
              text: [{ code: path }, ...(detail === null ? [] : [` ${detail}`])],
            })),
        },
      ],
    })),
  };
}
