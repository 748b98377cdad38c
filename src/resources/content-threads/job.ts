/**
 * Jobs for content threads, as values that cross to a thread and back: checking that octets are valid for their media
 * type, and proposing the fields of a resource from them. The event loop runs the same functions for short content. The
 * thread returns the fields as the text to store, because copying a parsed tree between threads takes longer than
 * parsing it.
 */
import type { Problem } from '../../http/problem.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import type { ContentLimits, ContentShape, PatchContent } from '../../kernel/content/content-shape.ts';
import { parseContent, parsePatch } from '../../kernel/content/parse-content.ts';
import type { Validator } from '../../kernel/content/validator.ts';
import { type Collection, searchTextOf } from '../../model/collection.ts';
import type { MaybePromise } from '../../store/store.ts';
import { type BulkContent, type BulkReading, readBulk } from '../document/bulk-content.ts';
import type { Writer } from '../document/closed-members.ts';
import { type ImportReading, type ReadRecord, readRecords } from '../document/import-records.ts';
import type { PatchLimits } from '../document/json-patch.ts';
import {
  type Proposable,
  type Proposed,
  proposeCreate,
  proposePatch,
  proposeReplace,
} from '../document/propose.ts';
import type { RecordBatch } from '../document/record-cutter.ts';
import { referencesOf, type WrittenFields } from '../document/representation.ts';

/** Content that is valid for its media type; it is parsed where it is used. */
export class CheckedContent {
  readonly bytes: Uint8Array;
  readonly mediaType: MediaType;

  constructor(bytes: Uint8Array, mediaType: MediaType) {
    this.bytes = bytes;
    this.mediaType = mediaType;
  }
}

export type Content = { readonly bytes: Uint8Array; readonly mediaType: MediaType };

/** A resource to write; `current` is the stored representation, undefined if there is none. */
export type ProposalTarget = {
  readonly change: 'create' | 'replace' | 'patch';
  readonly id: string;
  readonly current: string | undefined;
};

export type Job =
  | { readonly kind: 'check'; readonly change: ProposalTarget['change']; readonly content: Content }
  | {
      readonly kind: 'propose';
      readonly target: ProposalTarget;
      readonly writer: Writer;
      /** A value if the content was short and the stored representation is long. */
      readonly content: Content | { readonly value: unknown };
    }
  /** Reads and checks the items of a bulk request. */
  | ({
      readonly kind: 'bulk';
      readonly content: Content;
    } & BulkReading)
  /** Reads and checks records of an import. */
  | { readonly kind: 'import'; readonly content: RecordBatch; readonly reading: ImportReading };

export type Outcome =
  | {
      readonly ok: true;
      readonly fields?: { readonly [Member in keyof WrittenFields]: WrittenFields[Member] };
      readonly unchanged?: boolean;
      readonly bulk?: BulkContent;
      readonly items?: readonly ReadRecord[];
    }
  | { readonly ok: false; readonly problem: Problem };

/** The parts of a collection and the limits that a job needs. */
export type Workshop = {
  readonly collection: Proposable &
    Pick<Collection, 'searchFields' | 'searchIndex' | 'references' | 'takenIds' | 'unique'>;
  readonly validator: Validator;
  readonly shape: ContentShape;
  readonly contentLimits: ContentLimits;
  readonly patchLimits: PatchLimits;
};

export async function carryOut(workshop: Workshop, job: Job): Promise<Outcome> {
  if (job.kind === 'check') {
    const parsed = await readContent(workshop, job.change, job.content);
    return parsed.ok ? { ok: true } : parsed;
  }
  if (job.kind === 'bulk') {
    const parsed = await readContent(workshop, 'create', job.content);
    return parsed.ok ? readBulk(workshop, parsed.value, job) : parsed;
  }
  if (job.kind === 'import') return { ok: true, items: readRecords(workshop, job.content, job.reading) };
  const parsed =
    'value' in job.content
      ? ({ ok: true, value: job.content.value } as const)
      : await readContent(workshop, job.target.change, job.content);
  if (!parsed.ok) return parsed;
  const proposed = propose(workshop, job.target, job.writer, parsed.value);
  if (!proposed.ok) return proposed;
  const { collection } = workshop;
  const { fields, unchanged } = proposed;
  const text = JSON.stringify(fields);
  const search = searchTextOf(collection, fields);
  return { ok: true, fields: { text, search, references: referencesOf(collection, fields) }, unchanged };
}

/** @param content the parsed content: a patch with its format, or the value of a whole resource */
export function propose(
  { collection, validator, patchLimits }: Pick<Workshop, 'collection' | 'validator' | 'patchLimits'>,
  { change, id, current }: ProposalTarget,
  writer: Writer,
  content: unknown,
): Proposed {
  if (change === 'create') return proposeCreate(collection, validator, content, writer);
  const standing = current === undefined ? undefined : (JSON.parse(current) as Record<string, unknown>);
  if (change === 'replace') return proposeReplace(collection, validator, id, standing, content, writer);
  if (standing === undefined) throw new Error('a patch requires the document of its resource');
  return proposePatch(collection, validator, standing, content as PatchContent, patchLimits, writer);
}

type Read =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: Problem };

function readContent(
  { shape, contentLimits }: Workshop,
  change: ProposalTarget['change'],
  { bytes, mediaType }: Content,
): MaybePromise<Read> {
  if (change === 'patch') return parsePatch(bytes, mediaType, contentLimits);
  return parseContent(bytes, mediaType, shape, contentLimits);
}
