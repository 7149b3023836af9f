import { document, type Document, type Issue } from '../../model/document.js';
import {
  kernelPlanSchema,
  kernelsVersion,
  type KernelPlan,
  type KernelsResult,
} from '../../model/documents/kernels.js';
import type { Session } from '../../session/open.js';
import { readPlan, readStoredRoofline } from '../artifact.js';
import { readStoredGpuRoofline } from '../roofs.js';
import { readKernelsOfCases } from './executed.js';
import { readCaseRows, readConditionRows } from './rows.js';
import { resultOf } from './case.js';
import { mapsOf } from './maps.js';
import { roofsOfCpu, roofsOfGpu, type CaseRoofs } from './roofs.js';
import { stepOf } from './steps.js';
import { caseText } from '../../vocabulary/kernel-cases.js';
import type { IssueCode } from '../../model/issue-codes.js';
import { plural } from '../../vocabulary/format.js';
import { sessionOfKind } from '../session-identity.js';

/** Time and roof share of each operation of a `kernels` session, and the sums for a model's steps. */
export async function analyzeKernels(session: Session): Promise<Document<KernelsResult>> {
  const plan = await readPlan(session, 'kernels', kernelPlanSchema);
  const roofs = await roofsFor(session, plan);
  const database = await session.connect();
  try {
    const rows = await readCaseRows(database);
    const conditions = await readConditionRows(database);
    const executedKernels = await readKernelsOfCases(database, plan.traces);
    const cases = rows.map((row) => ({
      ...resultOf(row, { plan, roofs, conditions }),
      executed: executedKernels.get(row.case_id) ?? null,
    }));
    const byId = new Map(cases.map((testCase) => [testCase.case, testCase]));
    const { points, model, traces: _, ...settings } = plan;
    const dtypes = [...new Set(cases.map(({ dtype }) => dtype))];
    const result: KernelsResult = {
      session: sessionOfKind(session),
      plan: settings,
      model: model && { name: model.name, dtype: model.dtype },
      roofs: {
        compute: dtypes.map((dtype) => ({ dtype, flops_per_s: roofs.flopsPerS(dtype) })),
        bytes_per_s: roofs.bytesPerS(null).rate,
        levels: levelsOf(cases),
        launch_ns: roofs.launchNs,
      },
      cases,
      maps: mapsOf(points),
      steps: (model?.steps ?? []).map((step) => stepOf(step, byId)),
    };
    return document('kernels', kernelsVersion, result, [...session.issues, ...issuesOf(result)]);
  } finally {
    await database.close();
  }
}

async function roofsFor(session: Session, plan: KernelPlan): Promise<CaseRoofs> {
  if (plan.device === 'cpu') return roofsOfCpu(await readStoredRoofline(session), plan.threads);
  return roofsOfGpu(plan.device_facts?.name ?? null, plan.device, await readStoredGpuRoofline(session));
}

/** Memory levels of the cases' working sets, fastest first. */
function levelsOf(cases: KernelsResult['cases']): KernelsResult['roofs']['levels'] {
  const rates = new Map<string, number[]>();
  for (const { roof_level: level, roof_bytes_per_s: rate } of cases) {
    if (level !== null && rate.value !== null) rates.set(level, [...(rates.get(level) ?? []), rate.value]);
  }
  return [...rates]
    .map(([level, rates]) => ({
      level,
      low_bytes_per_s: Math.min(...rates),
      high_bytes_per_s: Math.max(...rates),
    }))
    .toSorted((a, b) => b.high_bytes_per_s - a.high_bytes_per_s);
}

function issuesOf({ cases, plan }: KernelsResult): Issue[] {
  const issues: Issue[] = [];
  const report = (code: IssueCode, severity: Issue['severity'], count: number, text: string) => {
    if (count > 0) issues.push({ code, severity, text, count });
  };
  const casesWith = (condition: (result: KernelsResult['cases'][number]) => boolean) =>
    cases.filter(condition);
  const throttled = casesWith(({ throttled_by }) => throttled_by.length > 0);
  const reasons = [...new Set(throttled.flatMap(({ throttled_by }) => throttled_by))].join(', ');
  report(
    'kernels_throttled',
    'warning',
    throttled.length,
    `Clocks were throttled (${reasons}) while ${throttled.length} of ${plural(cases.length, 'case')} ran.`,
  );
  const { runs: requestedRuns, max_seconds: seconds } = plan.protocol;
  const cutShort = casesWith(({ runs }) => runs > 0 && runs < requestedRuns);
  const minRuns = Math.min(...cutShort.map(({ runs }) => runs));
  report(
    'runs_cut',
    'warning',
    cutShort.length,
    `${cutShort.length} of ${plural(cases.length, 'case')} reached the time limit (--max-seconds ${seconds} per case) after ${minRuns}${cutShort.length > 1 ? ' or more' : ''} of ${plural(requestedRuns, 'run')}.`,
  );
  const wrong = casesWith(({ outcome }) => outcome === 'wrong');
  report(
    'kernels_wrong',
    'error',
    wrong.length,
    `Further from the float64 reference than rounding explains: ${names(wrong)}.`,
  );
  const overRoof = casesWith(({ roof_share: share }) => share.value !== null && share.value > 1.05);
  report(
    'roof_exceeded',
    'warning',
    overRoof.length,
    `Over 100 % of the roof: ${names(overRoof)}. The roof is too low for them, or the data was in a cache.`,
  );
  return issues;
}

const names = (cases: readonly { case: string }[]): string =>
  cases
    .slice(0, 3)
    .map((testCase) => caseText(testCase.case))
    .join('; ') + (cases.length > 3 ? ` and ${cases.length - 3} more` : '');
