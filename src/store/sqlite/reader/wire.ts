/** What crosses between the calling thread and a reader thread. */
import type { SqlValue } from '../../field-value.ts';
import type { OctetEnd } from '../../page-of-rows.ts';
import type { StorageFault } from '../../store.ts';
import type { Cells } from '../cells.ts';
import type { ConnectionOptions } from '../connection.ts';

export type ReaderData = {
  readonly path: string;
  readonly connection: ConnectionOptions;
  readonly scanTimeoutMs: number;
  /** One cell: any value but 0 ends the statement under way. */
  readonly cancelled: Int32Array;
};

/** One statement, and the revision of the table with this number from the same snapshot. */
export type ReadRequest = {
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
  readonly tableNumber: number;
  /** Statements to run after the first, in the same snapshot, until the rows are enough. */
  readonly rest?: readonly Pick<ReadRequest, 'sql' | 'parameters'>[];
  readonly octets?: OctetEnd;
};

export type ReadReply =
  /** `isCut`: octets ended the reading, and rows remain. */
  | {
      readonly kind: 'rows';
      readonly rows: readonly Cells[];
      readonly version: number;
      readonly isCut: boolean;
    }
  | { readonly kind: 'late' }
  /** `mistake`: the request is at fault, not the storage. */
  | {
      readonly kind: 'failed';
      readonly message: string;
      readonly mistake: boolean;
      readonly fault: StorageFault | undefined;
    };
