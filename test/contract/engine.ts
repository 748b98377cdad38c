/** What an engine gives the contract suite, and what the suite gives each topic of it; no tests. */
import type { Store, Table } from '../../src/store/store.ts';

/** A store over fresh data, and what the suite needs to look at it from outside. */
export type Opened = {
  readonly store: Store;
  /** Closes the store and opens the same data again. */
  reopen(): Promise<Store>;
  /** Opens what `backup` wrote; absent where an engine has no backups. */
  readonly openBackup?: (path: string) => Promise<Store>;
  /** Closes the store, puts what `backup` wrote in the place of its data, and opens that; absent where an engine has no backups. */
  readonly restore?: (path: string) => Promise<Store>;
  /** A path that does not exist yet, removed by `dispose`. */
  readonly freePath: () => string;
  dispose(): Promise<void>;
};

export type Engine = (tables: readonly Table[]) => Promise<Opened>;

/** How each topic gets its store: one for all of its tests, so each test uses ids of its own or says otherwise. */
export type Bench = {
  readonly store: () => Store;
  readonly opened: () => Opened;
  /** A store over data that no other test has touched, disposed of at the end of the test. */
  readonly fresh: (tables?: readonly Table[]) => Promise<Opened>;
};
