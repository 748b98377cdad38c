/** What the clients of a mixed load know: what was acknowledged, and what may or may not have happened. */
import type { Answer } from '../../harness/exchange.ts';
import type { Violations } from './client.ts';

export type Made = { readonly path: string; readonly name: string; readonly etag: string };

/** What became of a change: made for certain, certainly not made, or nobody knows. */
export type Fate = 'made' | 'not-made' | 'unknown';

export type Attempt = {
  readonly tag: string;
  /** The ETag that it was made from; undefined for a change without a condition. */
  readonly base: string | undefined;
  fate: Fate;
  /** The ETag that it was answered with. */
  etag: string | undefined;
};

export type Journal = {
  /** Resources by path that were acknowledged and not deleted. */
  readonly standing: Map<string, Made>;
  /** Paths whose deletion was acknowledged. */
  readonly deleted: Set<string>;
  /** Paths whose deletion was asked for and never acknowledged. */
  readonly perhapsDeleted: Set<string>;
  /** Names of resources of which nobody knows whether they were made. */
  readonly perhapsMade: Set<string>;
  /** Operations that were accepted, with the name of what each makes. */
  readonly accepted: Map<string, string>;
  /** Changes of the resources that all clients write to, by path. */
  readonly contested: ReadonlyMap<string, Attempt[]>;
  /** Counts the ETag of an acknowledged write, which no other write may ever have been given. */
  version(answer: Answer, what: string): string;
  readonly versions: number;
};

export function createJournal(contested: readonly string[], violations: Violations): Journal {
  const versions = new Map<string, string>();
  return {
    standing: new Map(),
    deleted: new Set(),
    perhapsDeleted: new Set(),
    perhapsMade: new Set(),
    accepted: new Map(),
    contested: new Map(contested.map((path) => [path, []])),
    version(answer, what) {
      const etag = String(answer.headers.etag);
      const given = versions.get(etag);
      if (given !== undefined && given !== what)
        violations.push(`${etag} was given to ${given} and to ${what}`);
      versions.set(etag, what);
      return etag;
    },
    get versions() {
      return versions.size;
    },
  };
}
