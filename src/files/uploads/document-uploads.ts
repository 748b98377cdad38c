/**
 * Uploads for a field of a document: a request to the field begins one, and the last octets change the document, by the patch that names the
 * file. Its end is that of the request which sends a file whole.
 */

import type { Problem } from '../../http/problem.ts';
import type {
  Ask,
  Receiving as Content,
  Operation,
  Proposal,
  Result,
  Understood,
} from '../../kernel/resource.ts';
import type { Served } from '../../resources/collection/served-collection.ts';
import { patchOperation } from '../../resources/collection/write-operations.ts';
import type { Overtaken, Row } from '../../store/store.ts';
import type { FilePart } from '../file-documentation.ts';
import { type FileStanding, fileStanding, madeFile, patchContent } from '../file-routes.ts';
import type { FileRecord, FileTarget } from '../file-rows.ts';
import { isResumable } from './upload-fields.ts';

export type DocumentPart = FilePart & { readonly document: string };

type Uploading = {
  begin(ask: Ask, content: Content, target: FileTarget): Promise<Proposal>;
  finish(ask: Ask, proposal: Proposal): Promise<Result>;
};

/** Content that begins a resumable upload, beside that of one which sends its file whole. */
class BeginningContent {
  readonly content: Content;

  constructor(content: Content) {
    this.content = content;
  }
}

/**
 * The operation of a field that begins an upload for it, where the request says so; its end is the change of the document.
 * @param plain takes a file that is sent whole @param isOnly it begins uploads alone
 */
export function beginningAt(
  part: FilePart,
  plain: Operation,
  isOnly: boolean,
  { begin, finish }: Uploading,
): Operation {
  const isBeginning = ({ request }: Ask) => isOnly || isResumable(request);
  return {
    ...plain,
    receive: (ask, content, mediaType) => {
      if (!isBeginning(ask)) return plain.receive?.(ask, content, mediaType) ?? noContent;
      if (content.isDueNow) return noContent;
      return { ok: true, value: new BeginningContent(content) };
    },
    discard: (content) => {
      if (!(content instanceof BeginningContent)) plain.discard?.(content);
    },
    propose: async (ask, standing, content) => {
      if (!(content instanceof BeginningContent))
        return (await plain.propose?.(ask, standing, content)) ?? { problem: null };
      if (!isResumable(ask.request)) return { problem: notResumable };
      const { served, field } = part;
      const document = ask.captures[0] ?? '';
      const trial = patchContent(part, standing as FileStanding, { upload: 'file_' });
      const refused = await patchOperation(served).propose?.(ask, standing as FileStanding, trial);
      if (refused !== undefined && refused.problem !== null) return { problem: refused.problem };
      const target = { collection: served.collection.name, field: field.name, document };
      return begin(ask, content.content, target);
    },
    act: async (ask, standing, proposal) =>
      proposal !== undefined && 'row' in proposal
        ? finish(ask, proposal)
        : ((await plain.act?.(ask, standing, proposal)) as Result),
  };
}

const notResumable: Problem = {
  code: 'field_invalid',
  message: 'POST begins a resumable upload here, by Tus-Resumable or Upload-Complete; PUT sends a file whole',
};

const noContent: Understood<never> = {
  ok: false,
  problem: {
    code: 'content_malformed',
    message: 'a resumable upload takes no Idempotency-Key: its address makes it harmless to repeat',
  },
};

/** The field of the document that takes the upload; undefined: a later request names it. */
export function partOf(
  declared: readonly Served[],
  { collection, field, document }: FileRecord,
): DocumentPart | undefined {
  const served = declared.find((each) => each.collection.name === collection);
  const found = served?.collection.files?.get(field ?? '');
  if (document === undefined || served === undefined || found === undefined) return undefined;
  return { served, field: found, document };
}

/** Gives the file to its document, by the rights of this moment. */
export async function attachUpload(
  ask: Ask,
  part: DocumentPart,
  { id }: Row,
): Promise<Exclude<Result, Overtaken>> {
  const { served, document } = part;
  const patch = patchOperation(served);
  const within = { ...ask, captures: [document] };
  return served.store.lines.change({ table: served.collection.name, id: document }, async () => {
    const standing = await fileStanding(part, within, 'update');
    if (!standing.exists || !standing.visible) return { refused: { code: 'not_found' } };
    if (!standing.permitted) return { refused: { code: 'forbidden' } };
    const proposal = await patch.propose?.(within, standing, patchContent(part, standing, { upload: id }));
    if (proposal !== undefined && proposal.problem !== null) return { refused: proposal.problem };
    const result = (await patch.act?.(within, standing, proposal)) as Result;
    return 'made' in result ? { ...result, made: madeFile(part, standing, id, result.made) } : result;
  });
}
