/** What a store tells of itself and its tables (`Store.report`), at a cost that does not grow with them. */

/** Rows of a table up to which `report` counts; above, it estimates. */
export const countedRowsMax = 10_000;

export type IndexReport = {
  /** `unique`: it also refuses equal values; `search`: it holds the words of these fields. */
  readonly kind: 'index' | 'unique' | 'search';
  /** Declared fields, in order. */
  readonly fields: readonly string[];
  /** False: it waits for a migration of documents, is still being filled, or is damaged. */
  readonly stands: boolean;
};

export type TableReport = {
  readonly name: string;
  /** Undeleted rows; an estimate may count deleted ones. */
  readonly rows: number;
  readonly isEstimate: boolean;
  /** Octets with those of its indexes; null: the engine cannot tell at a low cost. */
  readonly bytes: number | null;
  readonly indexes: readonly IndexReport[];
};

export type StoreReport = {
  /** Octets on disk. */
  readonly bytes: number;
  /** Number of the last migration of the system tables. */
  readonly schemaVersion: number;
  readonly tables: readonly TableReport[];
};
