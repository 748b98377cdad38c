/** The report of a store about itself and its tables (`Store.report`), whose cost does not grow with them, and the way in which it reads a list. */

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

/** Fields are those that clients name. */
export type Way =
  /** No row can match. */
  | { readonly by: 'nothing' }
  /** At most one row has the unique value. */
  | { readonly by: 'one'; readonly fields: readonly string[] }
  /** Rows are read in the order of the index, from the first of the page: a page costs what it returns. */
  | { readonly by: 'index'; readonly fields: readonly string[] }
  /** The index of words finds rows, which are then sorted. */
  | { readonly by: 'words'; readonly fields: readonly string[] }
  /** Begins with the rows of `table` that the field names. */
  | { readonly by: 'references'; readonly field: string; readonly table: string }
  /** Rows are looked at until the page is full. `wanted`: an index over these fields, in this order, would serve the query. */
  | { readonly by: 'scan'; readonly wanted?: readonly string[] };
