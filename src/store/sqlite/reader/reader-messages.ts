/** Messages between the calling thread and a reader thread. */
import type { SqlValue } from '../../field-value.ts';
import type { OctetEnd } from '../../page-of-rows.ts';
import type { StorageFault } from '../../store.ts';
import type { Cells } from '../cells.ts';
import type { ConnectionOptions } from '../connection.ts';

export type ReaderData = {
  readonly path: string;
  readonly connection: ConnectionOptions;
  readonly scanTimeoutMs: number;
  readonly cancelled: Int32Array;
};

export type Statement = { readonly sql: string; readonly parameters: readonly SqlValue[] };

/**
 * A statement of one row: a count, 1 if nothing may be read, and what it counted as a JSON text. If the count is 0, the reader reads nothing;
 * up to `listMax`, it runs `statements`, whose parameters at `listAt` are the text.
 */
export type Listing = Statement & {
  readonly listMax: number;
  readonly statements: readonly (Statement & { readonly listAt: number })[];
};

/** Statements that choose those of the page, in the same snapshot: the first listing that suffices, or else a count. */
export type Probe = {
  readonly listings: readonly Listing[];
  readonly count: Statement;
  /** Above this number, the reader runs `beyond`. */
  readonly countMax: number;
  readonly beyond: readonly Statement[];
};

/** A statement, with the table whose revision is read in the same snapshot. */
export type ReadRequest = Statement & {
  readonly tableNumber: number;
  /** Further tables that the statement reads: the latest revision of all is the answer's. */
  readonly relatedNumbers?: readonly number[] | undefined;
  /** Statements to run after the first, in the same snapshot, until there are enough rows. */
  readonly rest?: readonly Statement[];
  readonly probe?: Probe;
  readonly octets?: OctetEnd;
};

export type ReadReply =
  /** `isCut`: octets ended the read, and rows remain. `isBarred`: the probe said that nothing may be read. */
  | {
      readonly kind: 'rows';
      readonly rows: readonly Cells[];
      readonly version: number;
      readonly isCut: boolean;
      readonly isBarred: boolean;
    }
  | { readonly kind: 'late' }
  /** `mistake`: the request is at fault, not the storage. */
  | {
      readonly kind: 'failed';
      readonly message: string;
      readonly mistake: boolean;
      readonly fault: StorageFault | undefined;
    };
