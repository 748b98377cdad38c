/** What the benchmark needs of a kind of storage: floors over it, and Comity over it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { RequestKind } from './load/plan.ts';
import type { ProcessorShare } from './processor-share.ts';
import type { ServerProcess } from './server-process.ts';

export const adminKey = 'sk_benchBENCHbenchBENCHbenchBENCHbench42';

export type Subject = {
  readonly server: ServerProcess;
  readonly idleMemoryBytes: number | undefined;
};

/** Where one database may be made; nothing is there yet. */
export type Place =
  | { readonly store: 'sqlite'; readonly folder: string }
  | { readonly store: 'postgres'; readonly url: string; readonly schema: string; readonly folder: string };

/** Each program has as many shares of a processor as it has workers; together they are twice what the first one is. */
export type Scaled = {
  readonly words: string;
  readonly one: Subject;
  readonly two: readonly Subject[];
};

export type FloorKind = 'read' | 'not-modified' | 'list' | 'create';

export type Engine = {
  /** How it is set up, as a sentence of the report. */
  readonly words: string;
  /** Seeds what the floors read, and returns a starter of floor programs; `copy` keeps apart what two of them write. */
  prepareFloor(rows: number): Promise<(kind: FloorKind, copy?: string) => Promise<Subject>>;
  /** Seeds and starts Comity, of this tree or of the given one; rejects with the reason where it cannot. */
  startComity(rows: number, tree?: string): Promise<Subject>;
  /** Starts it over nothing, on every processor, to see how long that takes. */
  startEmpty(): Promise<Subject>;
  /** Starts it over what the last `startEmpty` left. */
  startAgain(): Promise<Subject>;
  /** Comity once and twice, for a measurement of scaling. */
  startScaled(rows: number, shareOf: (parts: number) => ProcessorShare): Promise<Scaled>;
  /** A database of its own for what is measured apart. */
  newPlace(): Place;
  close(): Promise<void>;
};

/** The program of a tree; a commit from before the bundle runs its sources. */
export function programOf(tree: string): string {
  const bundled = join(tree, 'dist', 'main.js');
  return existsSync(bundled) ? bundled : join(tree, 'src', 'main.ts');
}

/** Settings under which Comity is measured, whatever the storage. */
export const comityEnvironment: NodeJS.ProcessEnv = {
  COMITY_HOST: '127.0.0.1',
  COMITY_PORT: '0',
  COMITY_ADMIN_KEY: adminKey,
  COMITY_RATE_LIMIT_READS: '0',
  COMITY_RATE_LIMIT_WRITES: '0',
  // Longer than a run.
  COMITY_ACCESS_TOKEN_SECONDS: '86400',
  NODE_ENV: 'production',
};

/** Settings of Comity over a place of its own. */
export function environmentAt(place: Place): NodeJS.ProcessEnv {
  const database =
    place.store === 'sqlite' ? {} : { COMITY_DATABASE_URL: place.url, COMITY_DATABASE_SCHEMA: place.schema };
  return { ...comityEnvironment, ...database, COMITY_DATA: place.folder };
}

/** Which floor program answers a kind of request. */
export function floorKindOf(kind: RequestKind): FloorKind {
  if (kind === 'query' || kind === 'list' || kind === 'query-new' || kind === 'list-new') return 'list';
  return kind === 'create' || kind === 'not-modified' ? kind : 'read';
}
