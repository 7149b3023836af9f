import type {
  ExplainResult,
  Finding,
  MachineLoad,
  StageWaterfall,
  WaterfallKind,
} from '../../model/documents/explain.js';
import type { MissingFigure } from '../../model/figure.js';
import type { ManifestData } from '../../model/manifest.js';
import type { TableName } from '../../model/tables.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import type { WorkloadModel } from '../../facts/model-work.js';
import type { GpuRoofs } from '../../facts/roofs.js';
import type { TraceScope } from '../../facts/trace/scope.js';
import type { PhaseClock } from '../../facts/trace/windows.js';

/** Input of every rule; data of one rank and device, never a sum over executions. */
export interface FindingContext {
  manifest: ManifestData;
  /** Analyses of other sources that rules use: session-analyses.ts. */
  session: Session;
  database: SessionDatabase;
  /** Views phase_kernels, phase_gaps, phase_copies, phase_api, phase_ops, phase_stages and the table windows; null without a GPU timeline. */
  scope: TraceScope | null;
  /** The same views of a program without a GPU that has recorded framework operators; null otherwise. */
  operators: TraceScope | null;
  /** The clock of the windows of each kind; empty without a timeline. */
  clocks: readonly PhaseClock[];
  /** By kind, and by point of a benchmark or load; may be empty. */
  waterfalls: readonly StageWaterfall[];
  /** Architecture and storage of the workload's model; missing with the reason. */
  model: WorkloadModel | MissingFigure;
  /** Other load on the machine. */
  machine: MachineLoad;
  /** Roofs of the device; null without a GPU timeline. */
  roofs: GpuRoofs | null;
  /** Whether the session has rows of a table, in any execution. */
  has(table: TableName): boolean;
  /** Short name that distinguishes a kernel from all others of the session. */
  kernelLabel(name: string): string;
  /**
   * Runs a query and stores it as evidence: the text uses all rows, the document has the first ten. It may use the views and
   * windows of the scope: the stored query includes their definitions. Text and rows have labels in the column `kernel`, the document the
   * full names that the query returns.
   */
  evidence<T extends Record<string, string | number | boolean | null>>(
    sql: string,
    text: (rows: T[]) => string,
  ): Promise<{ rows: T[]; evidence: Finding['evidence'][number] }>;
}

/** A finding before ranking, which sets severity, at_stake_share and hidden_by. */
export type FoundDraft = Omit<
  Finding,
  'id' | 'rule' | 'severity' | 'at_stake_share' | 'hidden_by' | 'references' | 'gain' | 'title'
> & {
  /** With a share of the stage's time, that of at_stake_share as text: it is known when affected ms are limited to the bars. */
  title: string | ((share: string) => string);
  /** Per mean instance of the stage, unless the finding states otherwise. */
  gain: (Omit<NonNullable<Finding['gain']>, 'per'> & { per?: NonNullable<Finding['gain']>['per'] }) | null;
  stage: WaterfallKind | null;
  /** For a finding that is not about time; default: info. */
  severity?: Finding['severity'];
  /** Affected ms over the whole run, if not at_stake_ms times the instances of the stage. */
  run_ms?: number;
  /** Affected share: of the analyzed time for findings without a stage, of the stage if it has no waterfall. */
  share?: number;
  /**
   * idle: removes time in which the device waits for the host. busy (default): shortens device work, which shortens the stage
   * only if the host keeps ahead of the device.
   */
  removes?: 'idle' | 'busy';
  /** Launches per mean instance that are removed with the kernels, for a finding that removes busy time; negative: added. */
  launches?: number;
  /** Requests wait, so a gain per token shortens the run. */
  queued?: boolean;
  /** Overrides the rule's value, for rules with several causes. */
  noise?: boolean;
  /**
   * The gain is a share of the time in its bars, also of what other changes leave: so no finding hides it, and its gain on the rest is in
   * proportion.
   */
  proportional?: boolean;
  /** The rule of a cause that sets the pace once this one is removed, which leaves less than half of the gain. */
  paced_by?: string;
  /** Rules with smaller findings in the same stage that this change also removes; their time is counted here. */
  covers?: readonly string[];
};

/** A finding that a rule withholds, and why. */
export type Withheld = Omit<ExplainResult['withheld'][number], 'rule'>;

export type RuleOutcome =
  | { outcome: 'fired'; findings: FoundDraft[]; withheld?: Withheld[] }
  /** The condition was tested and does not hold; the reason has the numbers. */
  | { outcome: 'not_fired'; why: string; withheld?: Withheld[] }
  /** The session lacks the data; the reason names what is missing. */
  | { outcome: 'not_applicable'; why: string };

/** Texts of docs/reference/rules, one or two sentences each. */
interface RuleDocs {
  finds: string;
  /** Data that the rule needs. */
  needs: string;
  /** How the expected gain is computed and bounded. */
  gain: string;
  change: string;
  /** When the rule reports nothing although the cause may exist: completes "No finding: …". */
  withheld: string;
}

/** One file per rule in rules/; rules use causes visible in the tables, never names of programs or models. */
export interface Rule {
  /** snake_case, stable: used in documents, tests and docs. */
  id: string;
  /** General title: "Launch-bound decode". */
  title: string;
  docs: RuleDocs;
  references: Finding['references'];
  /**
   * Another process that takes a core can cause this finding, so it is withheld if the machine was busy. Applies to gaps above a
   * minimum length; not to shares of operators, because lost time affects all of them in proportion.
   */
  noise?: boolean;
  /**
   * Questions that the rule answers (phrases, separated by bars), and the command that captures its data; entries of older
   * rules are in ask/stored.
   */
  questions?: { phrases: string; needs: string };
  find(context: FindingContext): Promise<RuleOutcome>;
}

/** A rule without its judgement. */
export type RuleAbout = Pick<Rule, 'id' | 'title' | 'docs' | 'references'>;
