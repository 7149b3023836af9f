import { InferscopeError } from '../model/errors.js';

export function configError(path: string, where: string, why: string, fix: string): InferscopeError {
  return new InferscopeError('E_CONFIG_FILE', {
    what: `${path}${where}: ${why}`,
    why: 'The configuration file is invalid, so nothing was run.',
    fix,
  });
}
