/** What crosses between the calling thread and a reader thread. */
import type { SqlValue } from '../../field-value.ts';
import type { Cells } from '../cells.ts';
import type { ConnectionOptions } from '../connection.ts';

export type ReaderData = {
  readonly path: string;
  readonly connection: ConnectionOptions;
  readonly scanTimeoutMs: number;
};

/** One statement, and the revision of the table with this number from the same snapshot. */
export type ReadRequest = {
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
  readonly tableNumber: number;
};

export type ReadReply =
  | { readonly kind: 'rows'; readonly rows: readonly Cells[]; readonly version: number }
  | { readonly kind: 'late' }
  /** `mistake`: the request is at fault, not the storage. */
  | { readonly kind: 'failed'; readonly message: string; readonly mistake: boolean };
