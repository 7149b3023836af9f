/**
 * What a session can contain, possibly several, main subjects first. `counters` and `gemms` are separate captures: ncu and the BLAS logs
 * record no timeline.
 */
export const subjects = [
  'profile',
  'validation',
  'memory',
  'bench',
  'load',
  'kernels',
  'timeline',
  'steps',
  'counters',
  'gemms',
  'collectives',
  'results',
  'roofline',
  'telemetry',
] as const;
export type Subject = (typeof subjects)[number];

/** The part of a manifest that determines the session's subjects. It may be unchecked. */
interface Content {
  kind: string;
  executions: readonly { purpose: string }[];
  tables: Record<string, readonly { rows: number }[]>;
  artifacts: readonly { kind: string }[];
}

export const hasRows = ({ tables }: Pick<Content, 'tables'>, ...names: string[]): boolean =>
  names.some((name) => [tables[name] ?? []].flat().some((file) => (file?.rows ?? 0) > 0));

const rules: Record<Subject, (content: Content) => boolean> = {
  profile: ({ kind }) => kind === 'profile',
  validation: (content) => hasArtifact(content, 'validation'),
  memory: (content) => hasArtifact(content, 'memory-plan', 'memory-profile'),
  // A memory profile runs one point of a benchmark and can be compared as one.
  bench: (content) => hasArtifact(content, 'bench-plan'),
  load: (content) => hasArtifact(content, 'load-plan'),
  kernels: (content) => hasArtifact(content, 'kernel-plan'),
  timeline: (content) => hasRows(content, 'kernels', 'ops'),
  // Steps of a program that ran without a profiler; with a timeline they are its clean times. If ncu or BLAS logs also ran, a clean
  // execution recorded them.
  steps: (content) =>
    ['run', 'import'].includes(content.kind) &&
    hasRows(content, 'stages') &&
    !hasRows(content, 'kernels', 'ops') &&
    (!hasRows(content, 'counters', 'gemms') ||
      content.executions.some((execution) => execution?.purpose === 'clean')),
  counters: (content) => hasRows(content, 'counters'),
  gemms: (content) => hasRows(content, 'gemms'),
  collectives: (content) => hasRows(content, 'collectives'),
  results: (content) => hasRows(content, 'metrics'),
  roofline: (content) => hasArtifact(content, 'roofline-gpu'),
  telemetry: (content) => hasArtifact(content, 'monitor') || hasRows(content, 'telemetry'),
};

/** Whether the session is of a job with several ranks. */
export const isJob = (content: Pick<Content, 'artifacts'>): boolean => hasArtifact(content, 'ranks');

function hasArtifact({ artifacts }: Pick<Content, 'artifacts'>, ...kinds: string[]): boolean {
  return artifacts.some((artifact) => kinds.includes(artifact?.kind));
}

/** Subjects of a session, computed when it is written, and when sessions from before the field are read. */
export const subjectsOf = (content: Content): Subject[] =>
  subjects.filter((subject) => rules[subject](content));

export const hasSubject = (
  manifest: { subjects: readonly Subject[] },
  ...wanted: readonly Subject[]
): boolean => firstSubject(manifest, ...wanted) !== null;

/** The first of `wanted`, in order of importance, that the session has; null if none. */
export const firstSubject = <S extends Subject>(
  manifest: { subjects: readonly Subject[] },
  ...wanted: readonly S[]
): S | null =>
  manifest.subjects.find((subject): subject is S => (wanted as readonly Subject[]).includes(subject)) ?? null;

/** Kinds of sessions for subjects that otherwise accompany another measurement. */
const kindsBySubject: Partial<Record<Subject, readonly string[]>> = {
  roofline: ['roofline'],
  telemetry: ['monitor', 'import'],
};

/** The subject that summary and report of a session show; null for a session with only samples and rooflines. */
export const leadOf = ({ kind, subjects: sessionSubjects }: { kind: string; subjects: readonly Subject[] }) =>
  sessionSubjects.find((subject) => kindsBySubject[subject]?.includes(kind) ?? true) ?? null;
