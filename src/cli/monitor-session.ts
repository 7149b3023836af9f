import process from 'node:process';
import { analyzeMonitor } from '../facts/monitor/monitor.js';
import type { Document } from '../model/document.js';
import type { MonitorResult } from '../model/documents/monitor.js';
import { monitorView } from '../views/monitor.js';
import { type Recorded, type Recording, recordSession } from '../record/record-session.js';
import { homeFolders } from '../session/home.js';
import { openSession } from '../session/open.js';
import { createScratchFolder } from '../session/scratch-folder.js';
import { browserLine, print, printDocument, notify, terminalWidth } from './output.js';
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

/** Records a session, saved or deleted after its summary, and prints summary or document. */
export async function recordMonitor<T extends object>(
  label: string,
  options: MonitorCommandOptions,
  work: (recording: Recording) => Promise<Recorded & { result: T }>,
): Promise<T> {
  const isSaved = options.record === true || options.name !== undefined || options.tag.length > 0;
  const temporary = isSaved ? null : createScratchFolder();
  const home = temporary ? homeFolders({ ...process.env, INFERSCOPE_HOME: temporary.path }) : homeFolders();
  const plan = {
    label,
    kind: 'monitor',
    name: options.name ?? null,
    tags: options.tag,
    home,
    doing: 'save the recording',
  };
  try {
    const saved = await recordSession(plan, work);
    const thresholds = { idlePercent: options.idleBelow, idleMs: options.idleFor };
    const document = await analyzeMonitor(await openSession(saved.id, home), thresholds);
    if (!isSaved) document.data.session.id = null;
    await show(document, options.json === true);
    if (!isSaved) return saved;
    if (!options.json) print(browserLine(options.name ?? saved.id));
    const path = reportPath(saved.folder);
    const { pageOfView } = await import('../render/html/view.js');
    await writePage(path, (parts) => pageOfView(monitorView(document), parts));
    if (!options.quiet) notify(`${options.json ? `session ${saved.id} saved · ` : '  '}report: ${path}`);
    return saved;
  } finally {
    temporary?.remove();
  }
}

async function show(document: Document<MonitorResult>, json: boolean): Promise<void> {
  if (json) {
    printDocument(document);
    return;
  }
  const { terminalView } = await import('../render/terminal/view.js');
  print(terminalView(monitorView(document), { width: terminalWidth() }));
}
