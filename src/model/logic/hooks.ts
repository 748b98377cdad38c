/** Hooks of a collection (`collection({ hooks })`): functions within its writes and reads. */

import type { Document, Resources } from './collection-calls.ts';
import type { Caller, Logic, Refusing } from './logic.ts';

/** @template T the fields of the document @template R the calls on all collections @template M further members of the document */
export type Write<T, R = Resources, M = unknown> = Logic<R> &
  Refusing & {
    readonly action: 'create' | 'update' | 'delete';
    /** The id of the document, also of one that is being created. */
    readonly id: string;
    /** Undefined: the write creates the document. */
    readonly before: Document<T, M> | undefined;
    /** The fields to be stored, which the hook may change; they are validated again. Of a deletion: those that are removed. */
    readonly after: T;
  };

/** Runs in the unit of the write, before it commits, and again if the unit was overtaken. What it throws is a 500, and nothing is written. */
export type BeforeWrite<T, R = Resources, M = unknown> = (write: Write<T, R, M>) => void | Promise<void>;

/**
 * Runs for each document of each response, event and message: it must be pure and synchronous. It returns the document to serve: members
 * may be removed or changed, except for those that the server sets.
 */
export type AfterRead<T, M = unknown> = (read: {
  readonly document: Document<T, M>;
  readonly principal: Caller;
}) => Readonly<Record<string, unknown>>;

export type Hooks<T, R = Resources, M = unknown> = {
  readonly beforeWrite?: BeforeWrite<T, R, M>;
  readonly afterRead?: AfterRead<T, M>;
};
