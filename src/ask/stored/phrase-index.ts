import MiniSearch from 'minisearch';
import { isWeak, termsOf } from './words.js';

/** Minimum share of a question's terms that a phrase must have; below it the question is about something else. */
const minKnown = 0.25;
/** A second matching phrase of the same owner adds this share of its score, since several matches are better evidence. */
const secondPhrase = 0.2;

/**
 * Finds which of several owners a question is about, by typical phrases for each: BM25 over terms, with typing errors and word prefixes.
 */
export class PhraseIndex<Owner> {
  readonly #search = new MiniSearch<{ id: number; text: string }>({
    fields: ['text'],
    tokenize: termsOf,
    processTerm: (term) => term,
    searchOptions: {
      prefix: (term) => term.length > 4,
      fuzzy: (term) => (term.length > 5 ? 0.15 : false),
      boostTerm: (term) => (isWeak(term) ? 0.1 : 1),
      bm25: { k: 1.2, b: 0.5, d: 0.5 },
    },
  });
  readonly #owners: Owner[] = [];

  constructor(phrases: Iterable<readonly [owner: Owner, phrases: readonly string[]]>) {
    for (const [owner, texts] of phrases)
      for (const text of texts) this.#search.add({ id: this.#owners.push(owner) - 1, text });
  }

  /** Owners with their scores, best first; empty if none matches. */
  find(question: string): { owner: Owner; score: number }[] {
    const found = this.#search.search(question);
    const terms = [...new Set(termsOf(question))].filter((term) => !isWeak(term) && !/^\d/.test(term));
    const known = new Set(found.flatMap(({ queryTerms }) => queryTerms));
    if (terms.filter((term) => known.has(term)).length < minKnown * terms.length) return [];
    const scores = new Map<Owner, number[]>();
    for (const { id, score, queryTerms } of found) {
      const owner = this.#owners[id as number]!;
      // The library multiplies by the number of matched terms; weak terms must not count.
      const strong = Math.max(1, queryTerms.filter((term) => !isWeak(term)).length);
      scores.set(owner, [...(scores.get(owner) ?? []), (score * strong) / queryTerms.length]);
    }
    return [...scores]
      .map(([owner, list]) => [owner, list.toSorted((a, b) => b - a)] as const)
      .map(([owner, [best = 0, second = 0]]) => ({ owner, score: best + secondPhrase * second }))
      .toSorted((a, b) => b.score - a.score);
  }
}
