/**
 * Work on content that takes long, as values that cross to a thread and back: checking that octets are what their media type says, and
 * proposing the fields of a resource from them. `carryOut` is what the thread runs; the same functions run on the event
 * loop where content and resource are short.
 *
 * The trees of values stay in the thread. What comes back is the text of the fields as it will be stored, because copying a tree
 * between threads takes longer than parsing it did.
 */
import type { Problem } from '../../http/problem.ts';
import type { MediaType } from '../../http/syntax/media-type.ts';
import { type Collection, searchText } from '../../model/collection.ts';
import type { MaybePromise } from '../../store/store.ts';
import type { ContentLimits } from '../content/content-limits.ts';
import type { ContentShape } from '../content/form-shape.ts';
import { parseContent, parsePatch } from '../content/parse-content.ts';
import type { PatchContent } from '../content/parsed.ts';
import type { PatchLimits } from '../document/json-patch.ts';
import {
  type Proposable,
  type Proposed,
  proposeCreate,
  proposePatch,
  proposeReplace,
} from '../document/propose.ts';
import { referencesOf } from '../document/references.ts';
import type { WrittenFields } from '../document/representation.ts';
import type { Validator } from '../document/validator.ts';
import type { Writer } from '../document/withheld.ts';

/** Octets of content that are well-formed; their value is made where it is used. */
export class CheckedContent {
  readonly bytes: Uint8Array;
  readonly mediaType: MediaType;

  constructor(bytes: Uint8Array, mediaType: MediaType) {
    this.bytes = bytes;
    this.mediaType = mediaType;
  }
}

export type Content = { readonly bytes: Uint8Array; readonly mediaType: MediaType };

/** A resource to write: `current` is the stored representation, undefined where there is none. */
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
      /** A value where the content was short and the stored representation is long. */
      readonly content: Content | { readonly value: unknown };
    };

export type Outcome =
  | {
      readonly ok: true;
      readonly fields?: { readonly [Member in keyof WrittenFields]: WrittenFields[Member] };
      /** The resource has these fields already. */
      readonly unchanged?: boolean;
    }
  | { readonly ok: false; readonly problem: Problem };

/** What both kinds of job need of a collection. */
export type Workshop = {
  readonly collection: Proposable & Pick<Collection, 'searchFields' | 'references'>;
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
  const search = searchText(collection.searchFields, fields);
  return { ok: true, fields: { text, search, references: referencesOf(collection, fields) }, unchanged };
}

/** @param content as understood: a patch with its format, or the value of a whole resource */
export function propose(
  { collection, validator, patchLimits }: Pick<Workshop, 'collection' | 'validator' | 'patchLimits'>,
  { change, id, current }: ProposalTarget,
  writer: Writer,
  content: unknown,
): Proposed {
  if (change === 'create') return proposeCreate(collection, validator, content, writer);
  const standing = current === undefined ? undefined : (JSON.parse(current) as Record<string, unknown>);
  if (change === 'replace') return proposeReplace(collection, validator, id, standing, content, writer);
  if (standing === undefined) throw new Error('a patch of nothing');
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
