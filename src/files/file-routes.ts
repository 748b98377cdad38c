/**
 * The octets of a file as a resource: `{member}/{field}`, or `{member}/{field}/{fileId}` in a list. GET and HEAD by the rules of the document
 * at that moment; PUT of any octets to a field that holds one file, POST to a list, and DELETE. A write is the patch of the document that
 * names the file, so rules, hooks and events are those of any PATCH; its preconditions are about the file. Octets are read after everything else
 * is known that can refuse the request.
 */
import type { ContentFile } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import { formatContentDisposition, parseRequestDisposition } from '../http/syntax/content-disposition.ts';
import { type DigestAlgorithm, parseDigests } from '../http/syntax/digest.ts';
import { valuesOf } from '../http/syntax/field-value.ts';
import { fileNameDefault } from '../http/syntax/file-name.ts';
import { formatJsonPointer } from '../http/syntax/json-pointer.ts';
import { parseQueryString } from '../http/syntax/query-string.ts';
import { pascalCase, pathParameter } from '../kernel/documentation.ts';
import type {
  Ask,
  Operation,
  Proposal,
  Receiving,
  Representation,
  Resource,
  Result,
  Validators,
} from '../kernel/resource.ts';
import { permission } from '../model/access.ts';
import type { FileValue } from '../model/file.ts';
import { timeOfId } from '../model/id.ts';
import { type MemberStanding, memberStanding } from '../resources/collection/member.ts';
import { deprecationFields } from '../resources/collection/serve-collection.ts';
import type { Served } from '../resources/collection/served-collection.ts';
import { patchOperation } from '../resources/collection/write-operations.ts';
import { type MaybePromise, whenKnown } from '../store/store.ts';
import { type DocumentFiles, fileAt } from './document-files.ts';
import {
  beginningDocumentation,
  downloadDocumentation,
  type FilePart,
  previewDocumentation,
  removalDocumentation,
  uploadDocumentation,
} from './file-documentation.ts';
import { keyOf, tagOf } from './file-rows.ts';
import { contentTypeOf } from './media-type.ts';
import { FileMissing, type Place } from './place.ts';
import { PreviewRefused, previewTypes } from './preview-maker.ts';
import type { Preview, Previews } from './previews.ts';
import { rateProblem } from './uploads/upload-fields.ts';

export type Serving = {
  readonly files: DocumentFiles;
  readonly place: Place;
  readonly previews: Previews;
  /** Makes of an operation that takes a file whole one that begins resumable uploads as well; `isOnly`: these alone. */
  readonly resumable: (part: FilePart, plain: Operation, isOnly?: boolean) => Operation;
  /** Fields of every response of a resource with such an operation. */
  readonly resumableFields: (part: FilePart) => readonly string[];
};

/** The document, and the file if the principal sees it. */
export type FileStanding = MemberStanding & { readonly file: FileValue | undefined };

/** The resources of all fields of a collection, each with its octets. */
export function fileResources(serving: Serving, served: Served): readonly Resource[] {
  return [...(served.collection.files?.values() ?? [])].flatMap((field) => {
    const part: FilePart = { served, field };
    const read = readOperation(serving, part) as Operation;
    const remove = removeOperation(part) as Operation;
    const resumableFields = serving.resumableFields(part);
    const path = `${served.path}/{id}/${field.name}`;
    const previews = (of: string) =>
      field.rule.previews === undefined
        ? []
        : [resource(part, `${of}/previews/{name}`, [['GET', previewOperation(serving, part) as Operation]])];
    if (field.filesMax === undefined) {
      const put = uploadOperation(serving, part) as Operation;
      return [
        resource(
          part,
          path,
          [
            ['GET', read],
            ['PUT', serving.resumable(part, put)],
            ['POST', { ...serving.resumable(part, put, true), documentation: beginningDocumentation(part) }],
            ['DELETE', remove],
          ],
          resumableFields,
        ),
        ...previews(path),
      ];
    }
    const append = uploadOperation(serving, part) as Operation;
    return [
      resource(part, path, [['POST', serving.resumable(part, append)]], resumableFields),
      resource(part, `${path}/{fileId}`, [
        ['GET', read],
        ['DELETE', remove],
      ]),
      ...previews(`${path}/{fileId}`),
    ];
  });
}

function resource(
  { served: { collection }, field }: FilePart,
  pattern: string,
  operations: readonly (readonly [string, Operation])[],
  constantFields: readonly string[] = [],
): Resource {
  const isItem = pattern.includes('/{fileId}');
  const isPreview = pattern.endsWith('/previews/{name}');
  return {
    pattern,
    documentation: {
      name: `${pascalCase(collection.name)}${pascalCase(field.name)}${isItem ? 'File' : ''}${isPreview ? 'Preview' : ''}`,
      tag: collection,
      parameters: [
        pathParameter('id', 'Id of the document.'),
        ...(isItem ? [pathParameter('fileId', 'Id of the file.')] : []),
        ...(isPreview ? [pathParameter('name', 'Name of the preview, as declared.')] : []),
      ],
    },
    operations: new Map(operations),
    constantFields: [...deprecationFields(collection), ...constantFields],
    offers: ['application/json'],
    rateProblem,
  };
}

/** The standing of the file that the path names. */
export function fileStanding(
  { served, field }: FilePart,
  ask: Ask,
  action: 'read' | 'update',
): MaybePromise<FileStanding> {
  return whenKnown(memberStanding(served, ask, action), (standing) => {
    const { exists, row, seen } = standing;
    const doc = exists ? (seen?.doc ?? row?.doc) : undefined;
    const id = field.filesMax === undefined ? undefined : ask.captures[1];
    const isShown = doc !== undefined && fileAt(doc, field, id) !== undefined;
    const file = isShown && row !== undefined ? fileAt(row.doc, field, id) : undefined;
    return { ...standing, file };
  });
}

/** As `fileStanding`, of a file that must be there. */
export function existingFile(
  part: FilePart,
  ask: Ask,
  action: 'read' | 'update',
): MaybePromise<FileStanding> {
  return whenKnown(fileStanding(part, ask, action), (standing) => ({
    ...standing,
    exists: standing.exists && standing.file !== undefined,
  }));
}

/** Strong: other octets have another digest. A file is as old as its id says. */
export function fileValidators({ file }: Pick<FileStanding, 'file'>): Validators {
  return file === undefined
    ? { tag: null, modifiedAt: null }
    : { tag: tagOf(file.digest), modifiedAt: timeOfId(file.id) };
}

function readOperation({ place }: Serving, part: FilePart): Operation<FileStanding, never, Download> {
  const { served, field } = part;
  const { collection } = served;
  return {
    documentation: downloadDocumentation(part),
    permission: (principal) => permission(collection.access.read, 'read', principal),
    offers: ['*/*'],
    ranges: true,
    standing: (ask) => existingFile(part, ask, 'read'),
    propose: (ask) => readDownload(ask.query),
    validators: (_ask, standing) => ({ ...fileValidators(standing), cacheControl: collection.cacheControl }),
    represent: (_ask, { file }, proposal) => {
      if (file === undefined) throw new Error(`the field ${field.name} has no file`);
      return fileRepresentation(place, file, collection.cacheControl, proposal?.saves === true);
    },
  };
}

type PreviewStanding = FileStanding & {
  readonly preview: Preview | undefined;
  /** Why none can be made. */
  readonly problem: Problem | null;
};

/** GET and HEAD of a preview, which is made when it is first asked for. */
function previewOperation(
  { previews }: Serving,
  part: FilePart,
): Operation<PreviewStanding, never, Proposal> {
  const { served, field } = part;
  const { collection } = served;
  const open = async (
    standing: FileStanding,
    name: string,
    party: string,
  ): Promise<Preview | Problem | undefined> => {
    const { file, exists, visible, permitted } = standing;
    const rule = Object.entries(field.rule.previews ?? {}).find(([each]) => each === name)?.[1];
    if (!(exists && visible && permitted) || file === undefined || rule === undefined) return undefined;
    if (!previewTypes.has(file.type))
      return { code: 'not_found', message: `no preview can be made of ${file.type}` };
    try {
      return await previews.open({ ...file, key: keyOf(file) }, rule, party);
    } catch (error) {
      if (error instanceof PreviewRefused) return { code: 'not_found', message: error.message };
      if (error instanceof FileMissing) return undefined;
      throw error;
    }
  };
  return {
    documentation: previewDocumentation(part),
    permission: (principal) => permission(collection.access.read, 'read', principal),
    offers: ['image/*'],
    ranges: true,
    standing: async (ask) => {
      const standing = await fileStanding(part, ask, 'read');
      const opened = await open(standing, ask.captures.at(-1) ?? '', ask.party);
      // Who may not see the document learns no more of it by its previews.
      const isHidden = !standing.visible || !standing.permitted;
      const exists = isHidden ? standing.exists : opened !== undefined;
      return opened !== undefined && 'code' in opened
        ? { ...standing, exists, preview: undefined, problem: opened }
        : { ...standing, exists, preview: opened, problem: null };
    },
    propose: (_ask, { problem }) => ({ problem }),
    validators: (_ask, { preview, file }) => ({
      ...{ tag: preview?.sha256 ?? null, modifiedAt: fileValidators({ file }).modifiedAt },
      cacheControl: collection.cacheControl,
    }),
    represent: (_ask, { preview, file }) => {
      if (preview === undefined || file === undefined) throw new Error('a preview is of a file');
      const { type: mediaType, sha256: tag, ...content } = preview;
      return {
        ...{ content, mediaType, cacheControl: collection.cacheControl },
        validators: { tag, modifiedAt: fileValidators({ file }).modifiedAt },
        fields: ['Content-Disposition', 'inline', 'Content-Security-Policy', sandboxed],
      };
    },
  };
}

export type Download = Proposal & { readonly saves: boolean };

/** `?download=1` suggests to browsers to save the file. */
export function readDownload(query: string | undefined): Download {
  if (query === undefined) return { problem: null, saves: false };
  const pairs = parseQueryString(query, 2)?.filter(([name]) => name !== 'api_key');
  const [[name, value] = ['', ''], ...others] = pairs ?? [['?', '']];
  if (pairs?.length === 0) return { problem: null, saves: false };
  if (name === 'download' && (value === '1' || value === '0') && others.length === 0)
    return { problem: null, saves: value === '1' };
  const message = 'download=1 is the only parameter';
  return { problem: { code: 'query_parameter_invalid', message }, saves: false };
}

/** Types that browsers show by themselves, without running what is in them. */
const shown =
  /^(?:image\/(?:png|jpeg|gif|webp|avif|bmp|x-icon)|audio\/.+|video\/.+|text\/plain|application\/pdf)$/;

/** Of an own origin and without scripts: otherwise an uploaded page would act as the one who opens it. */
const sandboxed = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";
/** Browsers show no PDF within a sandbox; scripts in it have no access to the origin. */
const unsandboxed = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'";

export function fileRepresentation(
  place: Place,
  file: FileValue,
  cacheControl: string,
  saves: boolean,
): Representation {
  const { type, name, bytes, digest } = file;
  const isShown = shown.test(type.split(';', 1)[0] ?? '');
  const content: ContentFile = { bytes, read: (...extents) => place.read(keyOf(file), ...extents) };
  return {
    content,
    mediaType: contentTypeOf(type),
    validators: fileValidators({ file }),
    cacheControl,
    digest,
    fields: [
      ...['Content-Disposition', formatContentDisposition(isShown && !saves ? 'inline' : 'attachment', name)],
      ...['Content-Security-Policy', type === 'application/pdf' ? unsandboxed : sandboxed],
    ],
  };
}

/** The octets of a request, which are read once, and the file that they became. */
type Octets = {
  readonly receiving: Receiving;
  /** Undefined: the request states none. */
  readonly type: string | undefined;
  id?: string;
};

type Upload = Proposal & {
  /** The proposal of the patch that names the file. */
  readonly patched?: Proposal;
  readonly id?: string;
};

type Patch = Operation<MemberStanding, unknown, Proposal>;

function patchOf({ served }: Pick<FilePart, 'served'>): Patch {
  return patchOperation(served) as unknown as Patch;
}

/** PUT of a field that holds one file, POST to a list. */
export function uploadOperation(
  { files }: Pick<Serving, 'files'>,
  part: FilePart,
): Operation<FileStanding, Octets, Upload> {
  const { served, field } = part;
  const { collection } = served;
  const isList = field.filesMax !== undefined;
  const patch = patchOf(part);
  const naming = (standing: FileStanding, upload: string) => patchContent(part, standing, { upload });
  return {
    documentation: uploadDocumentation(part),
    permission: (principal) => permission(collection.access.update, 'update', principal),
    raw: true,
    receivedBytesMax: field.rule.bytesMax,
    createsHere: !isList,
    idempotent: true,
    reports: true,
    matchRequired: collection.requireMatch && !isList,
    changes: ({ captures }) => ({ table: collection.name, id: captures[0] ?? '' }),
    receive: async (ask, receiving) => {
      const octets: Octets = { receiving, type: ask.request.fields.contentType };
      const problem = receiving.isDueNow ? await take(files, part, ask, octets) : undefined;
      return problem === undefined ? { ok: true, value: octets } : { ok: false, problem };
    },
    discard: ({ id }) => files.discard(id === undefined ? [] : [id]),
    standing: (ask) =>
      whenKnown(fileStanding(part, ask, 'update'), (standing) =>
        // PUT creates a file, and no document.
        standing.exists
          ? { ...standing, exists: isList || standing.file !== undefined || !standing.visible }
          : { ...standing, exists: true, visible: false },
      ),
    validators: (_ask, standing) => fileValidators(standing),
    propose: async (ask, standing, octets) => {
      if (octets === undefined) throw new Error('an upload requires its content');
      // An upload may find no file; the document that gets it exists.
      const document = { ...standing, exists: true };
      // What refuses the document refuses the octets before they are read.
      const trial = await patch.propose?.(ask, document, naming(standing, 'file_'));
      if (trial !== undefined && trial.problem !== null) return { problem: trial.problem };
      const problem = octets.id === undefined ? await take(files, part, ask, octets) : undefined;
      if (problem !== undefined) return { problem };
      const id = octets.id ?? '';
      const patched = await patch.propose?.(ask, document, naming(standing, id));
      return { problem: patched?.problem ?? null, id, ...(patched === undefined ? {} : { patched }) };
    },
    act: async (ask, standing, proposal) => {
      if (proposal?.patched === undefined) throw new Error('an upload requires its patch');
      return actAs(
        ask,
        (within) => patch.act?.(within, { ...standing, exists: true }, proposal.patched as Proposal),
        (made) => madeFile(part, standing, proposal.id ?? '', made),
      );
    },
  };
}

/** The change of the document that names a file, as the content of a PATCH. */
export function patchContent(
  { field: { name, filesMax } }: FilePart,
  { row }: Pick<FileStanding, 'row'>,
  value: { readonly upload: string },
): unknown {
  if (filesMax === undefined) return { format: 'merge-patch', value: { [name]: value } };
  const pointer = formatJsonPointer([name]);
  const hasList = row !== undefined && Array.isArray((JSON.parse(row.doc) as Record<string, unknown>)[name]);
  const operation = hasList
    ? { op: 'add', path: `${pointer}/-`, value }
    : { op: 'add', path: pointer, value: [value] };
  return { format: 'json-patch', value: [operation] };
}

/** The result of an upload: the file as JSON, with the validators of its octets (RFC 9110 §9.3.4: they are stored as they came). */
export function madeFile({ field }: FilePart, standing: FileStanding, id: string, made: Made): Made {
  const file = made.doc === null ? undefined : fileAt(made.doc, field, id);
  return {
    outcome: 'made',
    created: field.filesMax !== undefined || standing.file === undefined,
    location: file?.url ?? null,
    doc: file === undefined ? null : JSON.stringify(file),
    modifiedAt: null,
    validated: false,
    ...(file === undefined ? {} : { fields: ['ETag', `"${tagOf(file.digest)}"`] }),
  };
}

type Made = Extract<Result, { made: unknown }>['made'];

/** The result of a patch as that of the file, also in what is kept for its Idempotency-Key. */
function actAs(
  ask: Ask,
  act: (ask: Ask) => MaybePromise<Result> | undefined,
  asFile: (made: Made) => Made,
): MaybePromise<Result> {
  const companions = ask.companions.map((companion) => (made: Made) => companion(asFile(made)));
  return whenKnown(act({ ...ask, companions }) as MaybePromise<Result>, (result) =>
    'made' in result ? { ...result, made: asFile(result.made) } : result,
  );
}

/** Receives the octets. @returns why they are refused */
async function take(
  files: DocumentFiles,
  { served: { collection }, field }: FilePart,
  ask: Ask,
  octets: Octets,
): Promise<Problem | undefined> {
  const { fields, rawFields } = ask.request;
  const digests = statedDigests(rawFields);
  if ('code' in digests) return digests;
  const name = statedName(rawFields);
  if (name === undefined) return { code: 'field_invalid', message: 'malformed Content-Disposition' };
  const content = await octets.receiving.open();
  const received = await files.receive(
    {
      principal: ask.principal,
      target: { collection: collection.name, field: field.name, document: ask.captures[0] ?? '' },
      rule: field.rule,
      name,
      type: octets.type,
      bytes: fields.contentLength === undefined ? undefined : Number(fields.contentLength),
      digests,
    },
    content,
  );
  if ('problem' in received) return received.problem;
  octets.id = received.id;
  return undefined;
}

/** The name in Content-Disposition; undefined if the field is malformed. */
export function statedName(rawFields: readonly string[]): string | undefined {
  const [value, ...others] = valuesOf(rawFields, 'content-disposition');
  if (value === undefined) return fileNameDefault;
  const parsed = others.length > 0 ? undefined : parseRequestDisposition(value);
  return parsed === undefined ? undefined : (parsed.fileName ?? fileNameDefault);
}

/** The digests in Repr-Digest and Content-Digest, which are of the same octets: an upload has no content coding and no range. */
export function statedDigests(
  rawFields: readonly string[],
): ReadonlyMap<DigestAlgorithm, Uint8Array> | Problem {
  const stated = new Map<DigestAlgorithm, Uint8Array>();
  for (const name of ['repr-digest', 'content-digest']) {
    const values = valuesOf(rawFields, name);
    const digests = values.length === 0 ? undefined : parseDigests(values.join(', '));
    if (values.length > 0 && digests === undefined)
      return { code: 'field_invalid', message: `malformed ${name}: a digest is sha-256=:BASE64:` };
    for (const [algorithm, octets] of digests ?? []) {
      const other = stated.get(algorithm);
      if (other !== undefined && !Buffer.from(other).equals(octets))
        return { code: 'digest_mismatch', message: 'Repr-Digest and Content-Digest differ' };
      stated.set(algorithm, octets);
    }
  }
  return stated;
}

function removeOperation(part: FilePart): Operation<FileStanding, never, Proposal> {
  const { collection } = part.served;
  const patch = patchOf(part);
  return {
    documentation: removalDocumentation(part),
    permission: (principal) => permission(collection.access.update, 'update', principal),
    idempotent: true,
    matchRequired: collection.requireMatch,
    changes: ({ captures }) => ({ table: collection.name, id: captures[0] ?? '' }),
    standing: (ask) => existingFile(part, ask, 'update'),
    validators: (_ask, standing) => fileValidators(standing),
    propose: (ask, standing) =>
      patch.propose?.(ask, standing, removalContent(part, standing)) ?? { problem: null },
    act: (ask, standing, proposal) =>
      actAs(
        ask,
        (within) => patch.act?.(within, standing, proposal as Proposal),
        (made) => ({
          ...made,
          ...{ created: false, doc: JSON.stringify(standing.file), location: null },
        }),
      ),
  };
}

function removalContent({ field: { name, filesMax } }: FilePart, { row, file }: FileStanding): unknown {
  if (filesMax === undefined) return { format: 'merge-patch', value: { [name]: null } };
  const list = (JSON.parse(row?.doc ?? '{}') as Record<string, readonly FileValue[]>)[name] ?? [];
  const left = list.filter(({ id }) => id !== file?.id).map(({ id }) => ({ id }));
  return { format: 'merge-patch', value: { [name]: left } };
}
