/** A collection with everything that serves it. Built once, at the start, and passed to each of its operations. */
import type { Problem } from '../../http/problem.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import type { Parsed, ParsedPatch } from '../../kernel/content/content-shape.ts';
import type { Validator } from '../../kernel/content/validator.ts';
import type { CallerAddress } from '../../kernel/rate-limit/caller-address.ts';
import type { Ask, Receiving, Result, Standing, Understood } from '../../kernel/resource.ts';
import type { Collection } from '../../model/collection.ts';
import type { FileValue } from '../../model/file.ts';
import type { Principal } from '../../model/principal.ts';
import type { LoopTurns } from '../../observe/event-loop.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Change, MaybePromise, NextRow, Row } from '../../store/store.ts';
import type { CollectionThreads, ContentThreads } from '../content-threads/content-threads.ts';
import type { PatchLimits } from '../document/json-patch.ts';
import type { FieldsOrWritten } from '../document/representation.ts';
import type { ReadRelated } from '../relations/related.ts';
import type { Relations } from '../relations/relations.ts';
import type { Listable, Listing } from './listing.ts';
import type { StoredQueries } from './stored-queries.ts';
import type { View } from './view.ts';
import type { Dependence, Reaches } from './visible-references.ts';

/** The parts that all collections share; built once. */
export type Serving = Pick<Services, 'store' | 'clock' | 'newId' | 'settings' | 'tracing'> & {
  /** Asked between two steps of a loop over rows or over functions of the application. */
  readonly turns: LoopTurns;
  readonly base: string;
  readonly collections: ReadonlyMap<string, Collection>;
  /** Accounts, to which fields of the collections may refer. */
  readonly accounts?: { readonly users: Collection };
  /** Absent: the event loop processes all content. */
  readonly longContent?: ContentThreads;
  /** The address for which the stored queries of an anonymous caller count. */
  readonly addressOf: CallerAddress;
  /** Absent: it bounds no content, and reads of pages wait in no queue. */
  readonly memory?: Services['memory'];
  /** The functions of an application within writes; undefined: no collection has any. */
  readonly logic: WriteLogic | undefined;
  /** Absent: no collection has files. */
  readonly files?: WriteFiles | undefined;
  readonly storedQueries: StoredQueries;
  readonly queriesPath: string;
  readonly listingOf: (listable: Listable) => Listing;
  readonly relations: ReadonlyMap<string, Relations>;
  readonly readRelated: ReadRelated;
  readonly viewOf: (collection: Collection) => (principal: Principal) => View;
  readonly reaches: Reaches;
};

export type Served = Pick<Serving, 'store' | 'clock' | 'newId' | 'turns'> & {
  readonly serving: Serving;
  readonly collection: Collection;
  readonly path: string;
  readonly validator: Validator;
  /** Processes long content; undefined: the event loop processes content of any length. */
  readonly threads: CollectionThreads | undefined;
  readonly listing: Listing;
  readonly view: (principal: Principal) => View;
  /** The collection among those that it refers to; undefined for one that is not an application's. */
  readonly relations: Relations | undefined;
  /** Counts the resources of other collections that refer to this one and that the principal may see. */
  readonly countDependants: (dependence: Dependence, principal: Principal) => MaybePromise<number>;
  /** The field by which a change refers to a resource that the principal may not see, if any. */
  readonly unseenReference: (
    principal: Principal,
    change: { readonly before: Row | undefined; readonly next: NextRow | null },
  ) => MaybePromise<string | undefined>;
  readonly parse: (bytes: Uint8Array, mediaType: MediaType) => MaybePromise<Parsed>;
  readonly parsePatch: (bytes: Uint8Array, mediaType: MediaType) => ParsedPatch;
  readonly patchLimits: PatchLimits;
  /** Its resources may be as long as content may be; those of built-in collections are short. */
  readonly longContent: boolean;
  /** Documents that a deletion may take with it, or change. */
  readonly dependantsMax: number;
  /** The maximum length of a representation, also after patches. */
  readonly documentCharactersMax: number;
  /** Its writes append events (§6). Those of accounts and keys go into the audit trail instead. */
  readonly announced: boolean;
  /** The owner of new resources; absent: the principal that creates them. */
  readonly owner?: string | null;
  /** Its stamped fields; undefined: there are none. */
  readonly stamps: Collection['stamp'];
  /** Set within functions, whose writes it stamps in place of the principal that they act as; null: the function has no caller. */
  readonly caller?: Principal | null;
  /** Set within a deletion in several units, which has marked what it deletes itself. */
  readonly isUnmarked?: boolean;
  /** The functions of an application that run within its writes; absent: there are none. */
  readonly logic?: WriteLogic | undefined;
  /** Absent: it has no files. */
  readonly files?: WriteFiles | undefined;
  /** The place of a changed resource in the content of the request, for its faults; absent: the content is the resource. */
  readonly placeOf?: (id: string) => string;
  /** Further checks of a change by a built-in resource, and changes that must commit with it. */
  readonly accompany?: (written: Written) => MaybePromise<Accompaniment>;
};

/** The standing of a resource that is not a row: every caller that passes its permission may use it. */
export const openStanding: Standing = { exists: true, visible: true, permitted: true };

/** A change of one resource that is about to be committed. */
export type Written = {
  readonly ask: Ask;
  readonly id: string;
  /** Undefined: the change creates the resource. */
  readonly before: Row | undefined;
  /** Null: the change removes the resource. */
  readonly next: NextRow | null;
};

export type Accompaniment = { readonly changes: readonly Change[] } | { readonly refused: Problem };

/** A write that is about to be made, for the functions of an application. */
export type ProposedWrite = {
  readonly action: 'create' | 'update' | 'delete';
  readonly id: string;
  /** Undefined: the write creates the resource. */
  readonly before: Row | undefined;
  /** Undefined: the write removes the resource. */
  readonly fields: FieldsOrWritten | undefined;
};

/** Settles which files a write gives to its document (src/files/document-files.ts). */
export type WriteFiles = {
  /** The octets of a file, for functions of the application. */
  readonly open: (file: FileValue) => AsyncIterable<Uint8Array>;
  /** The fields with files in place of the uploads that they name. */
  settle(
    served: Pick<Served, 'collection' | 'path'>,
    ask: Ask,
    write: { readonly id: string; readonly fields: FieldsOrWritten },
  ): MaybePromise<SettledFiles | { readonly refused: Problem }>;
  /** The document of settled fields is committed, and has the files. */
  taken(settled: SettledFiles): void;
  /** Takes a form with files (multipart/form-data) as it arrives. */
  receiveForm(
    served: Pick<Served, 'collection' | 'serving'>,
    ask: Ask,
    form: { readonly content: Receiving; readonly mediaType: MediaType; readonly isPatch: boolean },
  ): MaybePromise<Understood<ReceivedForm>>;
  /** Octets of such a form. */
  formBytesMax(collection: Pick<Collection, 'files'>, textBytesMax: number): number;
};

export type SettledFiles = { readonly fields: FieldsOrWritten; readonly uploads: readonly string[] };

/** A form whose files are kept as they are read, once the document that they are for was judged. */
export abstract class ReceivedForm {
  /** The document or the patch that the form is; read once. Rejects with ContentFailed. */
  abstract read(): Promise<Understood<unknown>>;
  /** Removes the files: no document took them. */
  abstract discard(): void;
}

/** Runs an application's functions within writes (src/logic/transaction/unit-logic.ts). */
export type WriteLogic = {
  /**
   * Runs the functions of the writes, and then `make`: what it commits and what they wrote are one unit.
   * @param make gets the fields to store, in the order of the writes, and the collection and the request that it must use
   */
  write(served: Served, ask: Ask, writes: readonly ProposedWrite[], make: MakeWrites): MaybePromise<Result>;
};

export type MakeWrites = (
  served: Served,
  ask: Ask,
  fields: readonly FieldsOrWritten[],
) => MaybePromise<Result>;
