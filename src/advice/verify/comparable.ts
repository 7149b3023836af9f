import { isDeepStrictEqual } from 'node:util';
import { remoteDevice } from '../../facts/bench/machine.js';
import { deviceOf } from '../../facts/device.js';
import { readAnyArchitecture } from '../../llm/read-architecture.js';
import { countParameters } from '../../llm/parameters.js';
import type { Issue } from '../../model/document.js';
import { InferscopeError } from '../../model/errors.js';
import type { ManifestData, Workload } from '../../model/manifest.js';
import type { Session } from '../../session/open.js';
import { capitalize } from '../../vocabulary/sentence.js';
import { formatCount, formatQuantity, plural } from '../../vocabulary/format.js';

/**
 * Whether a difference in time can come from the changes. A different model or device is refused; different lengths and
 * batches only give a warning, because they may be the change.
 * @throws E_USAGE naming what differs, or that both are one session
 */
export function checkComparable(before: Session, after: Session): Issue[] {
  if (before.id === after.id)
    throw refuse(before, after, 'they are the same session', 'Use the session of the rerun with the change.');
  const [a, b] = [before.manifest, after.manifest];
  const [x, y] = [a.workload, b.workload];
  const issues: Issue[] = [];
  const warn = (text: string) => issues.push({ code: 'other_workload', severity: 'warning', text });
  const model = modelDifference(x, y);
  if (model?.refuse) throw refuse(before, after, model.text, 'Verify a change on the model it was found on.');
  if (model) warn(`${capitalize(model.text)}.`);
  const device = deviceDifference(a, b);
  if (device !== null)
    throw refuse(
      before,
      after,
      device,
      'Run both on the same device; to predict another one: explain --what-if gpu=….',
    );
  if (x && y) {
    const lengths = (
      [
        ['input_len', 'prompt tokens'],
        ['output_len', 'output tokens'],
      ] as const
    ).flatMap(([key, words]) =>
      x[key] === y[key] || x[key] === null || y[key] === null ? [] : [`${words} ${x[key]} and ${y[key]}`],
    );
    if (lengths.length > 0)
      warn(`Lengths differ: ${lengths.join(', ')}. Attention and KV cache grow with them.`);
    if (x.engine.name !== y.engine.name) warn(`Different engines: ${x.engine.name}, then ${y.engine.name}.`);
  } else if (!x !== !y) {
    warn('Only one of the sessions recorded its workload, so it is not known whether both are the same.');
  }
  return issues;
}

/** Parameter counts may differ up to this share: padded sizes are a change of the same model. */
const maxPaddingShare = 0.03;

function modelDifference(x: Workload | null, y: Workload | null): { refuse: boolean; text: string } | null {
  const [a, b] = [x?.model ?? null, y?.model ?? null];
  if (!a || !b) return null;
  const names =
    a.name === b.name ? `two models named ${a.name}` : `different models, ${a.name} and ${b.name}`;
  try {
    const [one, other] = [readAnyArchitecture(a.config), readAnyArchitecture(b.config)];
    if (isDeepStrictEqual(one, other)) return null;
    const [p, q] = [countParameters(one).total, countParameters(other).total];
    if (one.layers.length === other.layers.length && Math.abs(p / q - 1) <= maxPaddingShare)
      return {
        refuse: false,
        text: `the models' sizes differ a little (${plural(p, 'parameter')} and ${formatCount(q)}): padding is assumed to be the change`,
      };
    return {
      refuse: true,
      text: `they ran ${names}, of ${formatQuantity(p, 'parameters')} and ${formatQuantity(q, 'parameters')}`,
    };
  } catch (error) {
    if (!(error instanceof InferscopeError)) throw error;
    return a.name === b.name ? null : { refuse: true, text: `they ran ${names}` };
  }
}

function deviceDifference(a: ManifestData, b: ManifestData): string | null {
  // A server does not say what it runs on.
  const kind = ({ workload }: ManifestData) =>
    workload && workload.device !== remoteDevice && (workload.device.startsWith('cpu') ? 'CPU' : 'GPU');
  const [x, y] = [kind(a), kind(b)];
  if (x && y && x !== y) return `one ran on a ${x}, the other on a ${y}`;
  const name = (manifest: ManifestData) =>
    x === 'CPU' ? (manifest.hardware['cpu_model'] ?? null) : deviceOf(manifest).name;
  const [nameA, nameB] = [name(a), name(b)];
  if (nameA !== null && nameB !== null && nameA !== nameB)
    return `they ran on different devices, ${nameA} and ${nameB}`;
  const [p, q] = [a.workload?.tensor_parallel_size ?? 1, b.workload?.tensor_parallel_size ?? 1];
  return p === q ? null : `one ran on ${plural(p, 'GPU')}, the other on ${q}`;
}

function refuse(before: Session, after: Session, why: string, fix: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `sessions ${before.id} and ${after.id} cannot verify a change`,
    why: `${capitalize(why)}.`,
    fix,
  });
}
