import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { InferscopeError } from '../../model/errors.js';
import { docker } from './docker.js';

/** A model as the engine's preparation on this machine sees it, and the mapping of its paths into the container. */
interface PlacedModel {
  model: string;
  places: Record<string, string>;
}

/**
 * A folder in the container, as `--model` names it. Preparation reads config.json on this machine, so a copy of the
 * folder is created below `scratch`, with an empty file in place of the weights; the container gets its own path.
 * Presets, hub ids and bare config.json files need no copy.
 * @throws E_MODEL_NOT_FOUND for a folder that is not in the container
 */
export async function placeContainerModel(
  model: string,
  container: string,
  python: string,
  scratch: string,
): Promise<PlacedModel> {
  const localStats = statSync(resolve(model), { throwIfNoEntry: false });
  const path = model.startsWith('/') ? model : null;
  if (localStats?.isFile() || (path === null && !localStats)) return { model, places: {} };
  const config = path === null ? null : await readContainerConfig(path, container, python);
  if (config === null) {
    if (!localStats) {
      throw new InferscopeError('E_MODEL_NOT_FOUND', {
        what: `there is no model at ${model} in the container ${container}`,
        why: 'Neither the container nor this machine has a config.json there.',
        fix: `Type: docker exec ${container} ls ${model} – with --container, --model names a path in the container.`,
      });
    }
    throw new InferscopeError('E_MODEL_NOT_FOUND', {
      what: `the folder ${model} is on this machine, not in the container ${container}`,
      why: 'A running container cannot get further volumes, and weights are too large to copy.',
      fix: `Start it with -v ${resolve(model)}:${resolve(model)}, name a path in it, a hub id, or the bare config.json for random weights (--model ${join(model, 'config.json')}).`,
    });
  }
  const placeholder = join(scratch, 'models', basename(path!) || 'model');
  mkdirSync(placeholder, { recursive: true });
  writeFileSync(join(placeholder, 'config.json'), config);
  writeFileSync(join(placeholder, 'model.safetensors'), '');
  return { model: placeholder, places: { [placeholder]: path! } };
}

async function readContainerConfig(path: string, container: string, python: string): Promise<string | null> {
  const script = 'import sys; sys.stdout.write(open(sys.argv[1] + "/config.json", encoding="utf-8").read())';
  const answer = await docker(['exec', container, python, '-B', '-c', script, path]);
  return answer.exitCode === 0 ? answer.stdout : null;
}
