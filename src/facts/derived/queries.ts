import {
  type DerivedTable,
  derivedTables,
  isTimelineTable,
  type TimelineTable,
} from '../../model/derived-tables.js';
import { InferscopeError } from '../../model/errors.js';
import type { Session } from '../../session/open.js';
import type { TableDefinition, DerivedTables } from '../../session/made-tables.js';
import type { ScopeOptions } from '../trace/scope.js';
import { timelineScope } from '../waterfall/ranks.js';
import { collectiveTables } from '../trace/collective-tables.js';
import { relations } from './relations.js';

/** Derived tables for a query over these sessions: of the rank and device that explain shows, or of the requested ones. */
export function derivedOf(sessions: readonly Session[], options: ScopeOptions = {}): DerivedTables {
  return {
    names: Object.keys(derivedTables),
    async make(names) {
      const [session, second] = sessions;
      if (!session || second) {
        throw new InferscopeError('E_USAGE', {
          what: `${names.join(', ')} can only be computed from one session`,
          why: `The query is over ${sessions.length}: their windows have the same ids.`,
          fix: 'Name one session, or use the recorded tables: inferscope sql --schema',
        });
      }
      return definitionsOf(session, names as DerivedTable[], options);
    },
  };
}

/** Derived tables for a query over a session in S3: those of collectives, which need nothing but its recorded tables. */
export const derivedOfRemote = (url: string): DerivedTables => ({
  names: Object.keys(derivedTables),
  async make(names) {
    const local = (names as DerivedTable[]).filter(isTimelineTable);
    if (local.length > 0) {
      throw new InferscopeError('E_USAGE', {
        what: `${local.join(', ')}: not available with --from`,
        why: 'It is made for one rank and device, and needs more of a session than its recorded tables.',
        fix: `Copy ${url} into the folder sessions of INFERSCOPE_HOME (aws s3 cp --recursive), or query recorded tables: inferscope sql --schema`,
      });
    }
    return definedCollectives();
  },
});

/**
 * SQL of the tables and of the tables they need, in dependency order.
 * @throws E_USAGE if the session has no timeline, or none for the requested rank and device
 */
export async function definitionsOf(
  session: Session,
  names: readonly DerivedTable[],
  options: ScopeOptions = {},
): Promise<TableDefinition[]> {
  const timelineTables = names.filter(isTimelineTable);
  const defined = timelineTables.length < names.length ? definedCollectives() : [];
  if (timelineTables.length === 0) return defined;
  const database = await session.connect();
  try {
    const { scope } = await timelineScope(session, database, options);
    const add = async (name: TimelineTable): Promise<void> => {
      if (defined.some((table) => table.name === name)) return;
      const { needs, storage, rows } = relations[name];
      for (const need of needs) await add(need);
      // A table's SQL can depend on rows of the tables it needs.
      await scope.need(...needs);
      defined.push({ name, as: storage === 'view' ? 'view' : 'table', ...(await rows(scope)) });
    };
    for (const name of timelineTables) await add(name);
    return defined;
  } finally {
    await database.close();
  }
}

const definedCollectives = (): TableDefinition[] =>
  Object.entries(collectiveTables).map(([name, select]) => ({ name, as: 'table', steps: {}, select }));
