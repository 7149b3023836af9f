import { InferscopeError } from '../../model/errors.js';

/** A file that is not what its name says, or no longer whole. */
export function damaged(path: string, why: string, cause?: unknown): InferscopeError {
  return new InferscopeError(
    'E_TRACE_FILE',
    {
      what: `cannot read the Nsight Systems capture ${path}`,
      why,
      fix: 'Export it again from the report: nsys export --type sqlite --force-overwrite true REPORT.nsys-rep',
    },
    { cause },
  );
}
