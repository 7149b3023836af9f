import { readFile } from 'node:fs/promises';
import { InferscopeError, messageOf } from '../../model/errors.js';
import { parseJson } from '../../model/parse-json.js';

/**
 * Reads a config.json.
 * @throws E_MODEL_NOT_FOUND if there is none, E_MODEL_CONFIG if it is not a JSON object
 */
export async function readConfig(path: string): Promise<Record<string, unknown>> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new InferscopeError(
      'E_MODEL_NOT_FOUND',
      {
        what: `cannot read ${path}`,
        why: messageOf(error),
        fix: 'Pass a folder that holds config.json (with an ONNX export, or alone), or a preset such as --model llama-24m.',
      },
      { cause: error },
    );
  }
  let why = 'It holds no JSON object.';
  try {
    const value: unknown = parseJson(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch (error) {
    why = messageOf(error);
  }
  throw new InferscopeError('E_MODEL_CONFIG', {
    what: `${path} is not a model's config.json`,
    why,
    fix: 'Take the config.json that the model was published with.',
  });
}
