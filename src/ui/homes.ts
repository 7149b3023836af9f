import { dirname } from 'node:path';
import { InferscopeError } from '../model/errors.js';
import type { Home } from '../session/home.js';
import { type ListedProgram, listedPrograms } from '../session/list.js';
import { openSession, type Session } from '../session/open.js';
import { selectSession } from '../session/select.js';
import { plural } from '../vocabulary/format.js';

/** A listed session with its key in URLs, and its home if there are several. */
export interface KeyedSession extends ListedProgram {
  key: string;
  home: string | null;
}

/**
 * The homes that a server shows. URLs name a session of the first home by its id and one of the n-th by id~n, since an archive imported
 * into two homes has the same id in both.
 */
export class Homes {
  constructor(private readonly all: readonly Home[]) {}

  list(): KeyedSession[] {
    return listedPrograms(...this.all).map((listedProgram) => {
      const index = this.indexOf(listedProgram.folder);
      return {
        ...listedProgram,
        key: keyOf(listedProgram.listed.id, index),
        home: this.all.length > 1 ? this.all[index]!.root : null,
      };
    });
  }

  /** The key of the session that a selector names, as `openSession` reads it. */
  select(selector: string): string {
    const { id, folder } = selectSession(selector, this.all);
    return keyOf(id, this.indexOf(folder));
  }

  /** @throws errors of openSession */
  open(key: string): Promise<Session> {
    const [id = '', number = '1'] = key.split('~');
    const home = this.all[Number(number) - 1];
    if (home === undefined)
      throw new InferscopeError('E_SESSION_NOT_FOUND', {
        what: `there is no session "${key}"`,
        why: `This server shows ${plural(this.all.length, 'home')}.`,
        fix: 'Choose it in the list of sessions.',
      });
    return openSession(id, home);
  }

  private indexOf(folder: string): number {
    return this.all.findIndex(({ sessions }) => sessions === dirname(folder));
  }
}

const keyOf = (id: string, home: number): string => (home === 0 ? id : `${id}~${home + 1}`);
