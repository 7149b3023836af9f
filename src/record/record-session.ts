import { describeEnvironment, type Fact } from '../hardware/environment.js';
import { type ClockPair, clockPair } from '../model/clock.js';
import type { Issue } from '../model/document.js';
import type { Capture, Execution, Workload } from '../model/manifest.js';
import type { Row } from '../model/tables.js';
import { withText } from '../model/sentence-template.js';
import { addCapture, type CaptureSummary } from '../session/capture.js';
import { createSession, type NewSession, type SessionWriter } from '../session/create.js';
import { type Home, homeFolders } from '../session/home.js';
import { openSession } from '../session/open.js';
import type { SessionFiles } from '../session/session-files.js';
import { cutEnd } from '../vocabulary/cut.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { type Privacy, privacyOfCommand } from './privacy.js';

interface RecordingPlan extends NewSession {
  /** What a full disk prevents, for its error message: "save the benchmark". */
  doing: string;
}

/** A session being recorded; invisible until its work is done. */
export interface Recording extends Privacy {
  files: SessionFiles;
  /** A folder for the output of tools, removed at the end. */
  scratch: string;
  startedAt: Date;
  /** The start: time 0 of the session. */
  zero: ClockPair;
  /** The start by CLOCK_MONOTONIC, ns. */
  originNs: number;
  /** Appends samples with CLOCK_MONOTONIC times. */
  append(rows: SampleRows): void;
  /** Saves a value of the whole session as `<kind>.json`, or under `name`. */
  saveJson(kind: string, value: unknown, name?: string): Promise<void>;
}

interface SampleRows {
  telemetry: readonly Row<'telemetry'>[];
  memory: readonly Row<'memory'>[];
}

/** Facts known at the end of a recording. */
export interface Recorded {
  title: string;
  status: 'complete' | 'interrupted' | 'failed';
  workload?: Workload | null;
  /** Added to the facts of this machine. */
  hardware?: Record<string, Fact>;
  software?: Record<string, Fact>;
  executions?: Execution[];
  captures?: Capture[];
  issues?: Issue[];
  /** Set if another machine recorded it: the session then has no facts, clock or time of this machine. */
  elsewhere?: { startedAt: Date; command?: readonly string[] };
}

export interface SavedSession {
  id: string;
  folder: string;
}

interface OpenRecording extends Recording {
  /** Makes the session visible, completely or not at all. */
  finish(recorded: Recorded): Promise<SavedSession>;
  /** Removes everything written. */
  abandon(): Promise<void>;
}

const maxTitleLength = 160;

/**
 * Starts a session recorded on this machine, with clock, secrets and this command.
 * @throws E_HOME_UNWRITABLE, E_DISK_FULL, E_SESSION_NAME: all before anything is measured
 */
async function openRecording(plan: RecordingPlan): Promise<OpenRecording> {
  const writer = await createSession(plan);
  const startClock = clockPair();
  const startedAt = new Date();
  const originNs = Number(startClock.monotonic_ns);
  const privacy = privacyOfCommand();
  const { redact } = privacy;
  return {
    files: writer,
    scratch: writer.scratch,
    startedAt,
    zero: startClock,
    originNs,
    ...privacy,
    append: (rows) => appendSamples(writer, rows, originNs),
    async saveJson(kind, value, name = `${kind}.json`) {
      const content = Buffer.from(JSON.stringify(value, null, 2));
      await writer.addArtifact(content, { kind, captureId: null, name });
    },
    finish(recorded) {
      const { elsewhere, issues = [] } = recorded;
      const environment = elsewhere ? null : describeEnvironment();
      return writer.finish(
        {
          title: cutEnd(redact(recorded.title), maxTitleLength),
          status: recorded.status,
          started_at: (elsewhere?.startedAt ?? startedAt).toISOString(),
          ended_at: new Date().toISOString(),
          clock_pairs: elsewhere ? [] : [startClock, clockPair()],
          command: [...(elsewhere?.command ?? privacy.command)],
          workload: recorded.workload ?? null,
          hardware: { ...environment?.hardware, ...recorded.hardware },
          software: { ...environment?.software, ...recorded.software },
          executions: recorded.executions ?? [],
          captures: recorded.captures ?? [],
        },
        [...issues, ...(environment?.issues ?? [])].map((issue) => withText(issue, redact(issue.text))),
      );
    },
    abandon: () => writer.abandon(),
  };
}

function appendSamples({ sink }: SessionWriter, { telemetry, memory }: SampleRows, originNs: number): void {
  for (const row of telemetry) sink.append('telemetry', { ...row, t_ns: row.t_ns! - originNs });
  for (const row of memory) sink.append('memory', { ...row, t_ns: row.t_ns! - originNs });
}

/**
 * Records a session with `work`: saved when it ends, removed when it throws.
 * @returns the session, and the result of `work`
 * @throws E_HOME_UNWRITABLE, E_DISK_FULL, E_SESSION_NAME, and errors of `work`
 */
export async function recordSession<T extends object>(
  plan: RecordingPlan,
  work: (recording: Recording) => Promise<Recorded & { result: T }>,
): Promise<SavedSession & T> {
  return writeToHome(plan.doing, plan.home, async () => {
    const recording = await openRecording(plan);
    try {
      const { result, ...recorded } = await work(recording);
      return { ...(await recording.finish(recorded)), ...result };
    } catch (error) {
      await recording.abandon();
      throw error;
    }
  });
}

/** Passed to work that adds captures to a session: its clock, and what recordSession provides for saving. */
type Addition = Pick<Recording, 'files' | 'redact'> & {
  /** Time 0 of the session. */
  zero: { realtime_ns: bigint; monotonic_ns: null };
  /** Ids of the session's captures. */
  usedCaptureIds: string[];
};

/**
 * Adds captures to a saved session with `work`: swapped in when it ends, unchanged when it throws.
 * @throws E_SESSION_NOT_FOUND, E_HOME_UNWRITABLE, E_DISK_FULL, and errors of `work`
 */
export function addToSession(
  selector: string,
  work: (addition: Addition) => Promise<CaptureSummary>,
): Promise<SavedSession> {
  return writeToHome(`add to session ${selector}`, undefined, async () => {
    const session = await openSession(selector);
    const files = await addCapture(session);
    const { redact } = privacyOfCommand();
    const { started_at, captures } = session.manifest;
    try {
      const { issues = [], ...added } = await work({
        files,
        redact,
        zero: { realtime_ns: BigInt(Date.parse(started_at)) * 1_000_000n, monotonic_ns: null },
        usedCaptureIds: captures.map(({ capture_id }) => capture_id),
      });
      return await files.finish({
        ...added,
        issues: issues.map((issue) => withText(issue, redact(issue.text))),
      });
    } catch (error) {
      await files.abandon();
      throw error;
    }
  });
}

/**
 * Runs work that writes below inferscope's home.
 * @throws E_HOME_UNWRITABLE, E_DISK_FULL for errors of the system there, and errors of `work`
 */
export async function writeToHome<T>(
  doing: string,
  home: Home | undefined,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw asStorageFailure(error, { path: (home ?? homeFolders()).root, doing, home: true });
  }
}
