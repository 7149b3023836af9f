import { byKernelKey, kernelKey } from '../../model/kernel-name.js';
import { kernelLabel, kernelLabels } from '../../vocabulary/kernel-label.js';
import { readKernelProperties } from '../../facts/trace/kernels.js';
import type { Evidence, ExplainResult, StageWaterfall } from '../../model/documents/explain.js';
import { missing } from '../../model/figure.js';
import type { ManifestData } from '../../model/manifest.js';
import type { TableName } from '../../model/tables.js';
import { hasRows } from '../../model/subjects.js';
import { withheldReasons, withheldWords } from '../../model/withheld.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { deviceOf } from '../../facts/device.js';
import { readMachineLoad } from '../../facts/machine-load.js';
import { workloadModel } from '../../facts/model-work.js';
import { gpuRoofs, readStoredGpuRoofline } from '../../facts/roofs.js';
import type { TraceScope } from '../../facts/trace/scope.js';
import { windowClocks } from '../../facts/trace/windows.js';
import { belowLauncher } from '../below-launcher.js';
import { withExpectedGains } from '../what-if/expected-gains.js';
import { type RuleFinding, rankFindings, withTitle } from './ranking.js';
import type { FindingContext, FoundDraft, Rule, RuleOutcome, Withheld } from './rule.js';
import { rules as allRules } from './rules/index.js';
import { stageTimes } from './stage-times.js';

/** Maximum evidence rows per query in a document. */
const maxRows = 10;

/**
 * The context that rules receive.
 * @param scope null for a session without a GPU timeline
 */
export async function findingContext(
  session: Session,
  database: SessionDatabase,
  scope: TraceScope | null,
  waterfalls: readonly StageWaterfall[],
): Promise<FindingContext> {
  const { manifest } = session;
  const clocks = scope ? await windowClocks(scope) : [];
  await scope?.need('windows', 'window_kernels', 'window_copies', 'window_idle');
  const onGpu = scope?.source.gpu_used ?? false;
  const labelOf = await kernelLabeler(database, onGpu ? scope : null);
  return {
    manifest,
    session,
    database,
    scope: onGpu ? scope : null,
    operators: scope && !onGpu ? scope : null,
    clocks,
    waterfalls,
    model: manifest.workload
      ? workloadModel(manifest.workload)
      : missing('no_model', 'the session does not say which model ran'),
    machine: await readMachineLoad(database, manifest),
    roofs: onGpu ? await roofsOf(session, scope) : null,
    has: (table: TableName) => hasRows(manifest, table),
    kernelLabel: labelOf,
    async evidence(sql, text) {
      const rows = await database.query(sql);
      const labeledRows = rows.map((row) => labeled(row, labelOf));
      const evidenceRows = rows.slice(0, maxRows) as Evidence['rows'];
      const evidence: Evidence = {
        text: text(labeledRows as never),
        sql: plainSql(sql),
        rows: evidenceRows,
        row_count: rows.length,
        kernel_labels: Object.fromEntries(
          evidenceRows.flatMap(({ kernel, kernel_name: counted }) =>
            [kernel, counted].flatMap((name) => (typeof name === 'string' ? [[name, labelOf(name)]] : [])),
          ),
        ),
      };
      return { rows: labeledRows as never, evidence };
    },
  };
}

type LabelOf = FindingContext['kernelLabel'];

/** Labels that distinguish all kernels of the scope and of the hardware counters, in which names are spelled in another way. */
async function kernelLabeler(database: SessionDatabase, scope: TraceScope | null): Promise<LabelOf> {
  await scope?.need('kernel_cells');
  const traced = scope ? await readKernelProperties(scope.database) : [];
  const counted = await database.query<{ name: string }>('SELECT DISTINCT kernel_name AS name FROM counters');
  const tracedByKey = byKernelKey(traced, ({ name }) => name);
  const onlyCounted = counted.filter(({ name }) => !tracedByKey.has(kernelKey(name)));
  const labels = kernelLabels([...traced, ...onlyCounted]);
  return (name) =>
    labels.get(name) ?? labels.get(tracedByKey.get(kernelKey(name))?.[0]?.name ?? '') ?? kernelLabel(name);
}

/** A row with the label of its kernel instead of the name, for sentences. */
const labeled = (row: Record<string, unknown>, labelOf: LabelOf): Record<string, unknown> =>
  typeof row['kernel'] === 'string' ? { ...row, kernel: labelOf(row['kernel']) } : row;

/** Removes the source indentation from a query. */
const plainSql = (sql: string): string => sql.replaceAll(/\n\s+/g, '\n').trim();

async function roofsOf(session: Session, scope: TraceScope | null) {
  const { manifest } = session;
  const index = scope?.source.focus.device ?? null;
  const { name } = deviceOf(manifest, index);
  const pciId = textFact(manifest, 'gpu_pci_id');
  return gpuRoofs(name, await readStoredGpuRoofline(session), {
    index,
    devices: manifest.workload?.tensor_parallel_size ?? 1,
    pciId,
  });
}

function textFact({ hardware }: ManifestData, key: string): string | null {
  const value = hardware[key];
  return typeof value === 'string' ? value : null;
}

/** Outcome of every rule, and the findings of rules that fired; gains are the estimates of the rules (without `--what-if`). */
export async function firedRules(
  context: FindingContext,
  rules: readonly Rule[] = allRules,
): Promise<{ ruleFindings: RuleFinding[] } & Pick<ExplainResult, 'rules' | 'withheld'>> {
  const stages = await stageTimes(context);
  const ruleFindings: RuleFinding[] = [];
  const outcomes: ExplainResult['rules'] = [];
  const withheld: ExplainResult['withheld'] = [];
  for (const rule of rules) {
    const result = await rule.find(context);
    const drafts = result.outcome === 'fired' ? result.findings : [];
    const isNoise = (draft: FoundDraft) => context.machine.busy && (draft.noise ?? rule.noise ?? false);
    const significant = drafts.filter((draft) => !isNoise(draft)).map((draft) => withTitle(draft, stages));
    ruleFindings.push(
      ...significant.map((draft) => ({
        rule,
        draft: { ...draft, check: belowLauncher(draft.check, context.manifest) },
      })),
    );
    const { id, title } = rule;
    const ruleWithheld = [
      ...drafts.filter(isNoise).map(({ stage }) => ({ title, stage, reason: withheldReasons.machine_busy })),
      ...(result.outcome === 'not_applicable' ? [] : (result.withheld ?? [])),
    ];
    withheld.push(...ruleWithheld.map((entry) => ({ rule: id, ...entry })));
    outcomes.push({ rule: id, title, ...outcomeOf(result, significant, ruleWithheld) });
  }
  return { ruleFindings, rules: outcomes, withheld };
}

function outcomeOf(
  result: RuleOutcome,
  significant: readonly { title: string }[],
  withheld: readonly Withheld[],
): Pick<ExplainResult['rules'][number], 'outcome' | 'why'> {
  if (significant.length > 0)
    return { outcome: 'fired', why: significant.map(({ title }) => title).join('; ') };
  const why = withheldWords(withheld);
  if (why !== null) return { outcome: 'withheld', why };
  return result.outcome === 'fired'
    ? { outcome: 'fired', why: '' }
    : { outcome: result.outcome, why: result.why };
}

/**
 * Runs every rule over the session and ranks the findings by affected ms over the whole run. If `--what-if` can compute a change,
 * the gain comes from it; other gains are at most the bars they name. Findings hidden by another one are marked. The list
 * may be empty.
 */
export async function rankedFindings(
  context: FindingContext,
  rules: readonly Rule[] = allRules,
): Promise<Pick<ExplainResult, 'findings' | 'rules' | 'withheld'>> {
  const { ruleFindings: findings, ...outcomes } = await firedRules(context, rules);
  const expected = await withExpectedGains(context, findings);
  return { findings: rankFindings(expected, await stageTimes(context)), ...outcomes };
}
