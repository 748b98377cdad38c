/** The calls that a function of an application may make while it runs, as data: threads send it as a message. */
import type { HeldMemory, RequestMemory } from '../../http/message.ts';
import type { Cause } from '../../model/actor.ts';
import type { Collection } from '../../model/collection.ts';
import type { FileValue } from '../../model/file.ts';
import type { Principal } from '../../model/principal.ts';
import type { Row, RowName, Store, Unit } from '../../store/store.ts';
import type { CascadeStep, CascadeWalk } from './cascade.ts';

export type ResourceCall =
  | { readonly do: 'get'; readonly collection: string; readonly id: string }
  | {
      readonly do: 'list';
      readonly collection: string;
      readonly query: unknown;
      /** In place of the limit in the query: as many as a page can have. */
      readonly largest?: true;
    }
  | {
      readonly do: 'create';
      readonly collection: string;
      readonly fields: unknown;
      readonly id: string | undefined;
      readonly owner: string | undefined;
    }
  | { readonly do: 'replace'; readonly collection: string; readonly id: string; readonly fields: unknown }
  | { readonly do: 'update'; readonly collection: string; readonly id: string; readonly patch: unknown }
  | { readonly do: 'delete'; readonly collection: string; readonly id: string }
  | {
      readonly do: 'emit';
      readonly type: string;
      readonly object: unknown;
      readonly tenant: string | undefined;
    }
  | { readonly do: 'mail'; readonly mail: unknown };

/** What a function runs within, if it is a hook. */
export type Enclosing = {
  /** The function that makes the write; undefined: a request does. */
  readonly scope: Scope | undefined;
  /** The document that is written. */
  readonly writing: RowName;
};

/** The calls of one function. Writes run one after the other in the order of their calls, so that each sees the previous one. */
export type Scope = {
  /** 0 for the function that the unit is for; each hook of a write is one deeper than what writes. */
  readonly depth: number;
  /** False once it has ended, or a function that it runs within. */
  readonly isOpen: boolean;
  /** True for a document whose write this function runs within, at any depth. */
  isWriting(row: RowName): boolean;
  /**
   * `fields`, `patch`, `query`, `object` and `mail` are values or their JSON texts.
   * @returns the representation as JSON text; for `list` the page; undefined for nothing
   * @throws ResourceRefused, FunctionFailed, StoreUnavailable
   */
  call(call: ResourceCall): Promise<string | undefined>;
  /** Refuses all further calls. */
  end(): void;
};

/** All that the functions of one unit write, kept until it is committed (transaction.ts). */
export type Transaction = {
  /** The store with those writes. */
  readonly store: Store;
  /** The caller of the request; otherwise the program itself. */
  readonly caller: Principal;
  /** Reads a row; the unit depends on it. */
  read(table: string, id: string): Promise<Row | undefined>;
  /** The request has its response, and a stream holds from now on what the calls take. */
  streams(held: HeldMemory): void;
  /** The octets of a file. @throws FunctionFailed if nothing has files */
  openFile(file: FileValue): AsyncIterable<Uint8Array>;
  /** Gives the files of a document that a call returned the method `open`. */
  readonly opened: <D>(collection: string, document: D) => D;
  /** The calls of the function that the unit is for. */
  readonly call: Scope['call'];
  /** The calls of one function. @param enclosing of a hook */
  scope(enclosing?: Enclosing): Scope;
  /**
   * Deletes what depends on the documents, and removes references to them, as far as declared (cascade.ts).
   * @param scope of the function whose deletion it is; undefined: a request's
   * @param isDoomed of a deletion in several units, of which this is one: takes what fits if there is more
   * @returns true if nothing is left
   * @throws CascadeExceeded without `isDoomed`; ResourceRefused, FunctionFailed, StoreUnavailable
   */
  cascade(
    named: readonly RowName[],
    scope: Scope | undefined,
    isDoomed?: CascadeWalk['isDoomed'],
  ): Promise<boolean>;
  /** Deletes some of what depends on the documents. @throws ResourceRefused, FunctionFailed, StoreUnavailable */
  follow(steps: readonly CascadeStep[], named: readonly RowName[]): Promise<void>;
  readonly collectionOf: (name: string) => Collection | undefined;
  /** Documents that one unit deletes or changes besides those that the request names. */
  readonly cascadeMax: number;
  /** True for a reference whose documents follow a deletion in the table. */
  follows(table: string, reference: { readonly table: string; readonly field: string }): boolean;
  unit(): Unit;
  /** A row that was changed between two reads of it: what the functions concluded from them does not count. */
  torn(): RowName | undefined;
};

/**
 * @param caller the one of the request, who owns what functions create; absent: the program itself, and what they create has no owner
 * @param cause for the audit trail; absent: Comity itself
 */
export type OpenTransaction = (caller?: Principal, cause?: Cause, how?: Opening) => Transaction;

export type Opening = {
  /** Counts what the functions read and write; absent: nothing does. */
  readonly memory?: Pick<RequestMemory, 'hold'> | undefined;
  /** For a deletion in several units, which has marked its documents. */
  readonly isUnmarked?: boolean;
  /**
   * For such a deletion that is decided: `judged` passes over the refusal or failure of a hook of what follows, without what that hook wrote, and
   * `unasked` runs none of them.
   */
  readonly hooks?: 'judged' | 'unasked';
};
