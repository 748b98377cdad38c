/**
 * A collection together with what serves it. Built once by compose.ts and handed to each operation of the collection.
 */

import type { Problem } from '../../http/problem.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import type { Parsed, ParsedPatch } from '../../kernel/content/parsed.ts';
import type { Validator } from '../../kernel/content/validator.ts';
import type { Ask } from '../../kernel/resource.ts';
import type { Collection } from '../../model/collection.ts';
import type { Principal } from '../../model/principal.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Change, MaybePromise, NextRow, Row } from '../../store/store.ts';
import type { CollectionThreads } from '../content-threads/content-threads.ts';
import type { PatchLimits } from '../document/json-patch.ts';
import type { Listing } from './listing.ts';
import type { View } from './view.ts';

export type Served = Pick<Services, 'store' | 'clock' | 'newId'> & {
  readonly collection: Collection;
  /** `/api/v1/products` */
  readonly path: string;
  readonly validator: Validator;
  /** Where long content is worked on; undefined: on the event loop, whatever its length. */
  readonly threads: CollectionThreads | undefined;
  readonly listing: Listing;
  /** What of a resource a principal sees. */
  readonly view: (principal: Principal) => View;
  /** How many resources that the principal sees name this one in a field of another collection. */
  readonly countDependants: (dependence: Dependence, principal: Principal) => MaybePromise<number>;
  /** The field by which a change names a resource that the principal may not see, if one does. */
  readonly unseenReference: (
    principal: Principal,
    change: { readonly before: Row | undefined; readonly next: NextRow | null },
  ) => Promise<string | undefined>;
  readonly parse: (bytes: Uint8Array, mediaType: MediaType) => MaybePromise<Parsed>;
  readonly parsePatch: (bytes: Uint8Array, mediaType: MediaType) => ParsedPatch;
  readonly patchLimits: PatchLimits;
  /** Whether its resources may be as long as content may be at all: those of the program itself are short. */
  readonly longContent: boolean;
  readonly bulkDeleteIdsMax: number;
  /** A representation may not grow beyond this, by however many patches. */
  readonly documentCharactersMax: number;
  /** Octets of documents after which a page takes no further one. */
  readonly pageBytesMax: number;
  /** Whether its writes append events (§6). Those of accounts and keys go into the audit trail instead. */
  readonly announced: boolean;
  /** Whose the resources are that it makes; absent: those of who asks. */
  readonly owner?: string | null;
  /** What else a built-in resource demands of a change, and what must commit with it. */
  readonly accompany?: (written: Written) => MaybePromise<Accompaniment>;
};

/** Resources of a table that name one in a field, as the store counted them. */
export type Dependence = {
  readonly table: string;
  readonly field: string;
  readonly id: string;
  readonly count: number;
};

/** A change of one resource, as it is about to be committed. */
export type Written = {
  readonly ask: Ask;
  readonly id: string;
  /** Undefined: the change creates it. */
  readonly before: Row | undefined;
  /** Null: the change removes it. */
  readonly next: NextRow | null;
};

export type Accompaniment = { readonly changes: readonly Change[] } | { readonly refused: Problem };
