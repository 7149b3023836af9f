import { join } from 'node:path';
import process from 'node:process';
import { analyzeMonitor } from '../facts/monitor/monitor.js';
import type { Document } from '../model/document.js';
import type { MonitorResult } from '../model/documents/monitor.js';
import { monitorView } from '../views/monitor.js';
import { openRecording, type OpenRecording, type Recorded } from '../record/record-session.js';
import { homeFolders } from '../session/home.js';
import { openSession } from '../session/open.js';
import { createScratchFolder } from '../session/scratch-folder.js';
import { asStorageFailure } from '../session/storage-failure.js';
import { print, printDocument, talk, terminalWidth } from './output.js';
import { reportPath, writePage } from './report-file.js';

export interface MonitorCommandOptions {
  duration?: number;
  hz: number;
  pid?: number;
  while?: boolean;
  record?: boolean;
  name?: string;
  tag: string[];
  idleBelow: number;
  idleFor: number;
  requireGpu?: boolean;
  exitCode: 'own' | 'child';
  json?: boolean;
  quiet?: boolean;
}

/** A saved session, or a temporary one deleted after the summary. */
export interface MonitorSession {
  recording: OpenRecording;
  /** Finishes the session and prints summary or document. @returns the document */
  conclude(recorded: Recorded): Promise<Document<MonitorResult>>;
  abandon(): Promise<void>;
}

export async function openMonitorSession(
  label: string,
  options: MonitorCommandOptions,
): Promise<MonitorSession> {
  const kept = options.record === true || options.name !== undefined || options.tag.length > 0;
  const temporary = kept ? null : createScratchFolder();
  const home = temporary ? homeFolders({ ...process.env, INFERSCOPE_HOME: temporary.path }) : homeFolders();
  const removeHome = () => temporary?.remove();
  const recording = await openRecording({
    label,
    kind: 'monitor',
    name: options.name ?? null,
    tags: options.tag,
    home,
    doing: 'save the recording',
  }).catch((error: unknown) => {
    removeHome();
    throw error;
  });
  return {
    recording,
    async conclude(recorded) {
      try {
        const { id } = await recording.finish(recorded);
        const thresholds = { idlePercent: options.idleBelow, idleMs: options.idleFor };
        const document = await analyzeMonitor(await openSession(id, home), thresholds);
        if (!kept) document.data.session.id = null;
        await show(document, options.json === true);
        if (kept) {
          const path = reportPath(join(home.sessions, id));
          const { pageOfView } = await import('../render/html/view.js');
          await writePage(path, (parts) => pageOfView(monitorView(document), parts));
          if (!options.quiet) talk(`${options.json ? `session ${id} kept · ` : ''}report: ${path}`);
        }
        return document;
      } catch (error) {
        throw asStorageFailure(error, { path: home.root, doing: 'save the recording', home: kept });
      } finally {
        removeHome();
      }
    },
    async abandon() {
      await recording.abandon();
      removeHome();
    },
  };
}

async function show(document: Document<MonitorResult>, json: boolean): Promise<void> {
  if (json) {
    printDocument(document);
    return;
  }
  const { terminalView } = await import('../render/terminal/view.js');
  print(terminalView(monitorView(document), { width: terminalWidth() }));
}
