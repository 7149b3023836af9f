import { chmodSync, writeFileSync } from 'node:fs';
import { noTelemetry } from '../../model/no-telemetry.js';

/** Mapping of files of this machine into the container. */
interface ContainerPlaces {
  container: string;
  /** Python in the container. */
  python: string;
  /** Folder in the container created by inferscope. */
  folder: string;
  /** Paths on this machine → paths in the container. */
  places: Record<string, string>;
  /** Folder of this machine with the files of a launch. */
  scratch: string;
  docker: string;
}

/**
 * Variables to pass, by name: docker takes their values from its own environment, so that no secret is on a command line. Where the
 * container stores its models (HF_HOME, HF_HUB_CACHE) is not changed.
 */
const passedVariables = `HF_TOKEN|HUGGING_FACE_HUB_TOKEN|HF_ENDPOINT|HF_HUB_OFFLINE|HF_HUB_DOWNLOAD_TIMEOUT|TRANSFORMERS_OFFLINE|VLLM_[A-Z0-9_]*|NCCL_[A-Z0-9_]*|PYTORCH_[A-Z0-9_]*|OMP_NUM_THREADS|INFERSCOPE_EXECUTION_ID|INFERSCOPE_[A-Z_]*MEMORY[A-Z_]*|PYTHONDONTWRITEBYTECODE|${Object.keys(noTelemetry).join('|')}`;

/**
 * A program that Python engines use like a local Python: it starts the one in the container. A launch's
 * files (its order, a model's dimensions) are sent as a tar. It does not handle signals: docker does not pass them on, and
 * a stopped client would leave the engine running (the agent's `stop` reaches it).
 */
function pythonShim({ container, python, folder, places, scratch, docker }: ContainerPlaces): string {
  const agent = `${folder}/probe/inferscope_container.py`;
  const run = [agent, 'run', folder, JSON.stringify(places)].map(quoted).join(' ');
  return `#!/bin/sh
# Written by inferscope memory for one run: the Python of the container ${container}.
trap '' INT TERM
names=$(env | sed -nE 's/^(${passedVariables})=.*/-e \\1/p')
wait=''
if command -v setsid >/dev/null 2>&1; then wait='setsid -w'; fi
for last; do :; done
case $last in
${quoted(scratch)}/*/*.json)
  folder=\${last%/*}
  tar -C ${quoted(scratch)} -cf - "\${folder#${quoted(scratch)}/}" | $wait ${quoted(docker)} exec -i $names ${quoted(container)} ${quoted(python)} -B ${run} --files -- "$@" ;;
*)
  exec $wait ${quoted(docker)} exec $names ${quoted(container)} ${quoted(python)} -B ${run} -- "$@" ;;
esac
`;
}

export function writeShim(path: string, places: ContainerPlaces): void {
  writeFileSync(path, pythonShim(places));
  chmodSync(path, 0o700);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
