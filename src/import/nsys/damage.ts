import { unreadableFile } from '../trace-file-error.js';
import { InferscopeError, messageOf } from '../../model/errors.js';

/** A file of the wrong type, or a damaged one. */
export const damagedCapture = unreadableFile(
  'Nsight Systems capture',
  'Export it again from the report: nsys export --type sqlite --force-overwrite true REPORT.nsys-rep',
);

/** Rows that are declared but missing, or that contradict each other. */
export class UnreadableRows extends Error {}

/** DuckDB errors caused by bad data, as opposed to a lack of memory or disk. */
const dataError =
  /^(?:Binder|Conversion|Invalid Input|Invalid|Out of Range|Serialization|IO) Error|TProtocol|[Pp]arquet/;

/** @throws E_TRACE_FILE if `load` failed because of the file's content */
export async function unlessDamaged<T>(path: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (error instanceof InferscopeError) throw error;
    const message = messageOf(error);
    if (error instanceof UnreadableRows || message.includes(path) || dataError.test(message))
      throw damagedCapture(path, message.split('\n')[0]!, error);
    throw error;
  }
}
