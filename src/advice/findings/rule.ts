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

/** What every rule may look at; all of one rank and device, never a sum over executions. */
export interface FindingContext {
  manifest: ManifestData;
  /** For analyses of other sources that rules read the judgement of: session-analyses.ts. */
  session: Session;
  database: SessionDatabase;
  /** Views focus_kernels, focus_gaps, focus_copies, focus_api, focus_ops, focus_stages and the table windows; null without a GPU timeline. */
  scope: TraceScope | null;
  /** The same views of a program that used no GPU, whose framework's operators were recorded; null otherwise. */
  operators: TraceScope | null;
  /** Whose clock the windows of each kind are told by; empty without a GPU timeline. */
  clocks: readonly PhaseClock[];
  /** By kind; empty where the session has none. */
  waterfalls: readonly StageWaterfall[];
  /** Architecture and storage of the workload's model; missing with the reason. */
  model: WorkloadModel | MissingFigure;
  /** What else ran on the machine. */
  machine: MachineLoad;
  /** What the device allows; null for a session of the CPU. */
  roofs: GpuRoofs | null;
  /** Whether the session has rows of a table, in any execution. */
  has(table: TableName): boolean;
  /**
   * Runs a query and keeps it as evidence: the text is made of all rows, the first ten are kept. It may name the views
   * and windows of the scope: the query that is kept has their definitions in front of it.
   */
  evidence<T extends Record<string, string | number | boolean | null>>(
    sql: string,
    text: (rows: T[]) => string,
  ): Promise<{ rows: T[]; evidence: Finding['evidence'][number] }>;
}

/** A finding before it is ranked: severity, at_stake_share and hidden_by follow from the others. */
export type FoundDraft = Omit<
  Finding,
  'id' | 'rule' | 'severity' | 'at_stake_share' | 'hidden_by' | 'references' | 'gain'
> & {
  /** Of a mean instance of the stage, unless it says otherwise. */
  gain: (Omit<NonNullable<Finding['gain']>, 'per'> & { per?: 'stage' | 'token' }) | null;
  stage: WaterfallKind | null;
  /** At stake over the whole run, ms, where that is not at_stake_ms of every instance of the stage. */
  run_ms?: number;
  /** At stake, as a share of what was looked at, where that is no stage. */
  share?: number;
  /**
   * idle: removes time in which the device waits for the host. busy (unless told otherwise): shortens what the device
   * does, which shows in the stage's time only where the host keeps ahead of it.
   */
  removes?: 'idle' | 'busy';
  /** As of the rule, for the findings of one that looks at several causes. */
  noise?: boolean;
  /** Rules whose smaller findings in the same stage this change removes as well: their time is counted here. */
  covers?: readonly string[];
};

/** What an analysis that the rule repeats does not claim. */
export type Withheld = Omit<ExplainResult['withheld'][number], 'rule'>;

export type RuleOutcome =
  | { outcome: 'fired'; findings: FoundDraft[]; withheld?: Withheld[] }
  /** The condition was looked at and does not hold: with the numbers that say so. */
  | { outcome: 'not_fired'; why: string; withheld?: Withheld[] }
  /** The session has nothing to tell it by: what is missing. */
  | { outcome: 'not_applicable'; why: string };

/** What docs/reference/rules says of a rule, a sentence or two each. */
export interface RuleDocs {
  finds: string;
  /** What a session must hold, so that the rule can judge it. */
  needs: string;
  /** How the expected gain is computed and bounded. */
  gain: string;
  change: string;
  /** When it says nothing, although the cause may be there: completes "No finding: …". */
  withheld: string;
}

/** One file a rule in rules/; it rests on causes that the tables show, never on names of programs or models. */
export interface Rule {
  /** snake_case, stable: used in documents, tests and docs. */
  id: string;
  /** Of the rule in general: "Launch-bound decode". */
  title: string;
  docs: RuleDocs;
  references: Finding['references'];
  /**
   * Another process that takes a core can produce what it finds: withheld where the machine was busy. So it is of stretches
   * that count from a length on; shares of operators are not, since lost time falls on all of them in proportion.
   */
  noise?: boolean;
  /**
   * What people ask that it answers (phrases, separated by bars), and the command whose capture lets it look; those of older
   * rules are in ask/stored.
   */
  asked?: { phrases: string; needs: string };
  find(context: FindingContext): Promise<RuleOutcome>;
}

/** A rule without its judgement. */
export type RuleAbout = Pick<Rule, 'id' | 'title' | 'docs' | 'references'>;
