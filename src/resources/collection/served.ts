/**
 * A collection together with what serves it. Built once by compose.ts and handed to each operation of the collection.
 */
import type { MediaType } from '../../http/syntax/media-type.ts';
import type { Collection } from '../../model/collection.ts';
import type { MaybePromise, Store } from '../../store/store.ts';
import type { Parsed, ParsedPatch } from '../content/parsed.ts';
import type { PatchLimits } from '../document/json-patch.ts';
import type { Validator } from '../document/validator.ts';
import type { Listing } from './listing.ts';

export type Served = {
  readonly collection: Collection;
  readonly store: Store;
  /** `/api/v1/products` */
  readonly path: string;
  readonly validator: Validator;
  readonly listing: Listing;
  readonly parse: (bytes: Uint8Array, mediaType: MediaType) => MaybePromise<Parsed>;
  readonly parsePatch: (bytes: Uint8Array, mediaType: MediaType) => ParsedPatch;
  readonly patchLimits: PatchLimits;
  readonly newId: () => string;
  readonly clock: () => number;
  readonly bulkDeleteIdsMax: number;
  /** A representation may not grow beyond this, by however many patches. */
  readonly documentCharactersMax: number;
};
