/**
 * Resumable uploads as resources: POST `{base}/uploads` begins one, perhaps with its first octets or all of them; `{base}/uploads/{id}` has how
 * far it came (HEAD, GET), takes pieces (PATCH) and forgets it (DELETE). A finished one waits for a document that names it; from then on it is
 * 404 here, so that a client which remembers it begins anew.
 *
 * Every offset in a response is durable. Problems have the statuses with which tus-js-client goes on: 423 to wait, 413 for quotas.
 */
import type { Problem } from '../../http/problem.ts';
import { formatHttpDate } from '../../http/syntax/http-date.ts';
import { json, named, pathParameter } from '../../kernel/documentation.ts';
import type {
  Ask,
  Receiving as Content,
  Operation,
  Proposal,
  Resource,
  Result,
  Standing,
} from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import type { FileRule } from '../../model/file.ts';
import type { Principal } from '../../model/principal.ts';
import type { Served } from '../../resources/collection/served-collection.ts';
import type { Row } from '../../store/store.ts';
import { type FilePart, fileTag } from '../file-documentation.ts';
import {
  arrivingRecord,
  type FileRecord,
  type FileTarget,
  fileChange,
  filesTable,
  isFileId,
  isSentBy,
  newFileId,
  recordOf,
} from '../file-rows.ts';
import { PlaceFull } from '../place.ts';
import { abandon, type Receiving } from '../receive-file.ts';
import { attachUpload, beginningAt, partOf } from './document-uploads.ts';
import {
  announcesContent,
  type Beginning,
  checksumAlgorithms,
  draftPiece,
  type Piece,
  rateProblem,
  readBeginning,
  readPiece,
  tusExtensions,
  tusPiece,
  tusVersion,
  versionProblem,
} from './upload-fields.ts';
import { UploadWriting, uploadOf } from './upload-writing.ts';

type Uploads = {
  readonly receiving: Receiving;
  readonly base: string;
  /** Collections with files. */
  readonly declared: readonly Served[];
  readonly uploadSeconds: number;
};

type UploadStanding = Standing & { readonly row: Row | undefined };
type Taken = Proposal & { readonly row?: Row; readonly isTus?: boolean };

const here: Standing = { exists: true, visible: true, permitted: true };

export function uploadResources(serving: UploadServing): readonly Resource[] {
  const { base } = serving;
  const common = { constantFields: serving.constantFields, offers: ['application/json'], rateProblem };
  return [
    {
      ...common,
      // Upload Limits of the draft: OPTIONS of what begins uploads says so by this type.
      constantFields: [...common.constantFields, 'Accept-Patch', draftPiece],
      pattern: `${base}/uploads`,
      documentation: { name: 'Uploads', tag: fileTag },
      operations: new Map([['POST', serving.begin as Operation]]),
    },
    {
      ...common,
      pattern: `${base}/uploads/{id}`,
      documentation: {
        name: 'Upload',
        tag: fileTag,
        parameters: [pathParameter('id', 'Id of the upload.')],
      },
      operations: new Map([
        ['GET', serving.look as Operation],
        ['PATCH', serving.append as Operation],
        ['DELETE', serving.forget as Operation],
      ]),
    },
  ];
}

const uploadSchema = named('Upload', {
  description: 'A resumable upload. Once it is complete, a document takes it by `{ "upload": id }`.',
  type: 'object',
  properties: {
    id: { type: 'string' },
    name: { type: 'string' },
    offset: { type: 'integer', minimum: 0 },
    length: { type: 'integer', minimum: 0 },
    complete: { type: 'boolean' },
    type: { type: 'string' },
    digest: { type: 'string' },
    expiresAt: { type: 'string', format: 'date-time' },
  },
  required: ['id', 'offset', 'complete', 'expiresAt'],
});

const uploadExample = {
  ...{ id: 'file_01k1jx7v2mh5s8b4c9d0e6f3ga', name: 'video.mp4', offset: 1_048_576, length: 73_400_320 },
  ...{ complete: false, expiresAt: '2026-08-02T09:30:00.000Z' },
};

const upload = json(uploadSchema, uploadExample);

const pieceCodes = [
  ...(['field_invalid', 'quota_exceeded', 'media_type_unsupported', 'file_space_missing'] as const),
  ...(['checksum_mismatch', 'upload_busy', 'upload_rate_limited', 'tus_version_unsupported'] as const),
];

export class UploadServing {
  readonly #uploads: Uploads;
  readonly #writing: UploadWriting;
  readonly #bytesMax: number;
  readonly constantFields: readonly string[];

  constructor(uploads: Uploads) {
    this.#uploads = uploads;
    this.#writing = new UploadWriting(uploads.receiving);
    this.#bytesMax = Math.max(0, ...rulesOf(uploads.declared).map(({ bytesMax }) => bytesMax));
    this.constantFields = [
      ...['Tus-Resumable', tusVersion, 'Tus-Version', tusVersion, 'Tus-Extension', tusExtensions],
      ...['Tus-Checksum-Algorithm', checksumAlgorithms.join(','), 'Tus-Max-Size', String(this.#bytesMax)],
      ...['Upload-Limit', this.#limitOf(this.#bytesMax)],
    ];
  }

  /** Of a field whose uploads begin at it. */
  fieldsAt({ field: { rule } }: FilePart): readonly string[] {
    const limit = this.#limitOf(rule.bytesMax);
    return ['Tus-Version', tusVersion, 'Accept-Patch', draftPiece, 'Upload-Limit', limit];
  }

  get base(): string {
    return this.#uploads.base;
  }

  beginningAt(part: FilePart, plain: Operation, isOnly = false): Operation {
    return beginningAt(part, plain, isOnly, {
      begin: (ask, content, target) => this.#begin(ask, content, target),
      finish: async (ask, proposal: Taken) => {
        const result = await this.#finish(ask, proposal, true);
        if (!('made' in result) || proposal.isTus !== true) return result;
        const fields = [...(result.made.fields ?? []), 'Tus-Resumable', tusVersion];
        return { ...result, made: { ...result.made, fields } };
      },
    });
  }

  #limitOf(bytesMax: number): string {
    return `max-size=${bytesMax}, max-age=${this.#uploads.uploadSeconds}`;
  }

  get begin(): Operation<Standing, Content, Taken> {
    return {
      documentation: {
        id: 'beginUpload',
        summary: 'Begin a resumable upload',
        description:
          'By tus 1.0 (`Tus-Resumable`, `Upload-Length`) or the resumable upload draft of the IETF (`Upload-Complete`). The content is the first octets, or all of them.',
        takes: { '*/*': { schema: { type: 'string', format: 'binary' } } },
        gives: { created: upload },
        creates: 'always',
        codes: pieceCodes,
      },
      permission: (principal) => this.#permission(principal),
      raw: true,
      reports: true,
      receivedBytesMax: this.#bytesMax,
      receive: (_ask, content) => ({ ok: true, value: content }),
      standing: () => here,
      propose: (ask, _standing, content) => this.#begin(ask, content),
      act: (ask, _standing, proposal) => this.#finish(ask, proposal, true),
    };
  }

  get append(): Operation<UploadStanding, Content, Taken> {
    return {
      documentation: {
        id: 'appendToUpload',
        summary: 'Append octets to an upload',
        description: `\`${tusPiece}\` or \`${draftPiece}\`, behind the octets that \`Upload-Offset\` says.`,
        takes: { [draftPiece]: { schema: { type: 'string', format: 'binary' } } },
        gives: { changed: upload },
        mayBeMissing: true,
        // The last piece may change a document.
        codes: [...pieceCodes, 'upload_offset_wrong', 'not_found', 'validation_failed'],
      },
      permission: (principal) => this.#permission(principal),
      raw: true,
      contentTypes: [draftPiece, tusPiece],
      reports: true,
      receivedBytesMax: this.#bytesMax,
      receive: (_ask, content) => ({ ok: true, value: content }),
      standing: (ask) => this.#find(ask),
      propose: (ask, standing, content) => this.#append(ask, standing, content),
      act: (ask, _standing, proposal) => this.#finish(ask, proposal, false),
    };
  }

  get look(): Operation<UploadStanding, never, Proposal> {
    return {
      documentation: {
        id: 'getUpload',
        summary: 'Get how far an upload came',
        gives: { representation: upload },
        mayBeMissing: true,
        codes: ['tus_version_unsupported', 'upload_rate_limited'],
      },
      permission: (principal) => this.#permission(principal),
      hasFieldState: true,
      // A piece under way is of a connection that its client has given up.
      standing: async (ask) => {
        const [id = ''] = ask.captures;
        if (versionProblem(ask.request) !== null) return this.#find(ask);
        await this.#writing.settle(id);
        const found = await this.#find(ask);
        if (found.row === undefined) return found;
        if (!(await this.#writing.isReachable(found.row))) return { ...found, exists: false };
        const { row } = await this.#writing.complete(
          found.row,
          ask.principal,
          this.#ruleOf(recordOf(found.row)),
        );
        const part = partOf(this.#uploads.declared, recordOf(row));
        if (part === undefined || recordOf(row).state !== 'complete') return { ...found, row };
        // A crash came between the last octet and the document: a client that hears of all octets is done.
        const attached = await attachUpload(ask, part, row);
        return 'made' in attached ? { ...found, row } : { ...found, exists: false, row: undefined };
      },
      propose: (ask) => ({ problem: versionProblem(ask.request) }),
      represent: (_ask, { row }) => {
        if (row === undefined) throw new Error('an upload that exists has a row');
        return {
          content: this.#document(row),
          mediaType: 'application/json',
          validators: { tag: null, modifiedAt: null },
          cacheControl: 'no-store',
          fields: this.#fields(row),
        };
      },
    };
  }

  get forget(): Operation<UploadStanding, never, Proposal> {
    return {
      documentation: {
        id: 'deleteUpload',
        summary: 'Forget an upload',
        gives: {},
        mayBeMissing: true,
        codes: ['tus_version_unsupported', 'upload_rate_limited'],
      },
      permission: (principal) => this.#permission(principal),
      standing: (ask) => this.#find(ask),
      propose: (ask) => ({ problem: versionProblem(ask.request) }),
      act: async (ask, { row }) => {
        if (row === undefined) throw new Error('an upload that exists has a row');
        await this.#writing.settle(row.id);
        await abandon(this.#uploads.receiving, row.id);
        return { made: { ...madeOf(ask), doc: null, fields: [] }, rev: row.rev };
      },
    };
  }

  /** Those who may write a document with files may upload. */
  #permission(principal: Principal) {
    const all = this.#uploads.declared.flatMap(({ collection: { access } }) => [
      permission(access.create, 'create', principal),
      permission(access.update, 'update', principal),
    ]);
    return all.every((each) => each === 'denied') ? 'denied' : 'granted';
  }

  async #find({ captures: [id = ''], principal }: Ask): Promise<UploadStanding> {
    const row = isFileId(id) ? await this.#uploads.receiving.store.read(filesTable, id) : undefined;
    const record = row === undefined ? undefined : recordOf(row);
    const isOpen =
      record?.state === 'complete' || (record?.state === 'arriving' && record.upload !== undefined);
    return isOpen && isSentBy(record, principal)
      ? { ...here, row }
      : { ...here, exists: false, row: undefined };
  }

  #ruleOf({ collection, field }: Pick<FileRecord, 'collection' | 'field'>): FileRule | undefined {
    const served = this.#uploads.declared.find((each) => each.collection.name === collection);
    return served?.collection.files?.get(field ?? '')?.rule;
  }

  /** @param bound the field of the document that takes the upload when it is complete */
  async #begin(ask: Ask, content: Content | undefined, bound?: FileTarget): Promise<Taken> {
    const { receiving } = this.#uploads;
    const { principal, request } = ask;
    const read = readBeginning(request);
    if (!read.ok) return { problem: read.problem };
    const beginning = bound === undefined ? read.value : { ...read.value, target: bound };
    const { target, length = 0 } = beginning;
    const rule = target === undefined ? undefined : this.#ruleOf(target);
    if (target !== undefined && rule === undefined)
      return {
        problem: {
          code: 'field_invalid',
          message: `${target.collection}.${target.field} is no field for files`,
        },
      };
    const bytesMax = rule?.bytesMax ?? this.#bytesMax;
    if (length > bytesMax) return { problem: tooLong(bytesMax) };
    const used = await receiving.quotas.excess({
      principal,
      collection: target?.collection ?? '',
      bytes: length,
    });
    if (used !== undefined) return { problem: used };
    const row = await this.#create(principal, beginning).catch(orFull);
    if (row === undefined) return { problem: { code: 'file_space_missing' } };
    if (beginning.isInformed)
      request.inform?.(104, [
        'Upload-Draft-Interop-Version',
        '8',
        'Location',
        this.#urlOf(row.id),
        'Upload-Limit',
        this.#limitOf(bytesMax),
      ]);
    const { isTus } = beginning;
    if (!beginning.hasContent || content === undefined) return this.#completed(ask, { row, isTus });
    const piece: Piece = {
      isTus,
      offset: 0,
      length: beginning.length,
      isComplete: beginning.isComplete,
      checksum: beginning.checksum,
    };
    const taken = await this.#take(ask, { row, bytesMax }, piece, content);
    const { problem } = taken;
    // Without an answer, only a client that has the address goes on; the others begin anew.
    if (problem !== null && !(beginning.isInformed && problem.code === 'content_malformed'))
      await abandon(receiving, row.id);
    return taken;
  }

  async #create(principal: Principal, { name, type, length, target }: Beginning): Promise<Row> {
    const { store, clock, newId } = this.#uploads.receiving;
    const id = newFileId(newId);
    const at = clock();
    const record = arrivingRecord(principal, {
      ...{ name, bytes: length ?? 0, ...target },
      upload: {
        offset: 0,
        ...(length === undefined ? {} : { length }),
        ...(type === undefined ? {} : { type }),
      },
    });
    const change = fileChange(id, undefined, record, at);
    const commit = await store.commit({ changes: [change], events: [] });
    if (commit.outcome !== 'committed') throw new Error('the id of a new upload is taken');
    await this.#writing.create(id);
    return { ...change.next, id, rev: commit.rev } as Row;
  }

  async #append(ask: Ask, { row }: UploadStanding, content: Content | undefined): Promise<Taken> {
    if (row === undefined || content === undefined)
      throw new Error('a piece needs its upload and its content');
    const read = readPiece(ask.request);
    if (!read.ok) return { problem: read.problem };
    const record = recordOf(row);
    // What a client sends again after the answer to its last piece was lost.
    if (record.state === 'complete' && read.value.offset === record.bytes && !announcesContent(ask.request))
      return { problem: null, row, isTus: read.value.isTus };
    const bytesMax = this.#ruleOf(record)?.bytesMax ?? this.#bytesMax;
    return this.#take(ask, { row, bytesMax }, read.value, content);
  }

  async #take(
    ask: Ask,
    { row, bytesMax }: { readonly row: Row; readonly bytesMax: number },
    piece: Piece,
    content: Content,
  ): Promise<Taken> {
    const { offset, length, isComplete, checksum, isTus } = piece;
    const open = () => content.open();
    const written = await this.#writing.append(row.id, {
      offset,
      length,
      isComplete,
      checksum,
      bytesMax,
      open,
    });
    if (written === undefined) return { problem: { code: 'not_found' } };
    if (written.problem !== undefined) return { problem: written.problem };
    return this.#completed(ask, { row: written.row, isTus });
  }

  async #completed(ask: Ask, { row, isTus }: { readonly row: Row; readonly isTus: boolean }): Promise<Taken> {
    const completed = await this.#writing.complete(row, ask.principal, this.#ruleOf(recordOf(row)));
    if (completed.problem === undefined) return { problem: null, row: completed.row, isTus };
    await abandon(this.#uploads.receiving, row.id);
    return { problem: completed.problem };
  }

  /** The result of a request about an upload; the end of one that is for a document is the change of the document. */
  async #finish(ask: Ask, proposal: Taken | undefined, created: boolean): Promise<Result> {
    const made = this.#made(ask, proposal, created);
    const row = proposal?.row;
    const record = row === undefined ? undefined : recordOf(row);
    const part = record?.state === 'complete' ? partOf(this.#uploads.declared, record) : undefined;
    if (row === undefined || part === undefined) return made;
    const attached = await attachUpload(ask, part, row);
    if (!('made' in attached) || proposal?.isTus === true) return 'made' in attached ? made : attached;
    // As the request would have been answered that had sent the file whole.
    const { fields = [], ...file } = attached.made;
    return { made: { ...made.made, ...file, fields: [...made.made.fields, ...fields] }, rev: attached.rev };
  }

  #made(ask: Ask, proposal: Taken | undefined, created: boolean) {
    const row = proposal?.row;
    if (row === undefined) throw new Error('an upload requires its row');
    const isTold = created || (proposal?.isTus === false && recordOf(row).state === 'complete');
    return {
      made: {
        ...madeOf(ask),
        created,
        location: created ? this.#urlOf(row.id) : null,
        doc: isTold ? this.#document(row) : null,
        fields: this.#fields(row),
      },
      rev: row.rev,
    };
  }

  #urlOf(id: string): string {
    return `${this.#uploads.base}/uploads/${id}`;
  }

  #stateOf(row: Row) {
    const record = recordOf(row);
    const complete = record.state !== 'arriving';
    const { offset, length } = complete ? { offset: record.bytes, length: record.bytes } : uploadOf(record);
    return {
      record,
      complete,
      offset,
      length,
      expiresAt: row.updatedAt + this.#uploads.uploadSeconds * 1000,
    };
  }

  #fields(row: Row): readonly string[] {
    const { offset, length, complete, expiresAt } = this.#stateOf(row);
    return [
      ...['Upload-Offset', String(offset), 'Upload-Complete', complete ? '?1' : '?0'],
      ...(length === undefined ? [] : ['Upload-Length', String(length)]),
      ...['Upload-Expires', formatHttpDate(expiresAt)],
    ];
  }

  #document(row: Row): string {
    const { record, complete, offset, length, expiresAt } = this.#stateOf(row);
    const { name, type, digest } = record;
    return JSON.stringify({
      ...{ id: row.id, name, offset, length, complete },
      ...(complete ? { type, digest } : {}),
      expiresAt: new Date(expiresAt).toISOString(),
    });
  }
}

function madeOf({ now }: Pick<Ask, 'now'>) {
  return { outcome: 'made', created: false, location: null, modifiedAt: now, validated: false } as const;
}

function orFull(error: unknown): undefined {
  if (!(error instanceof PlaceFull)) throw error;
}

function tooLong(bytesMax: number): Problem {
  return { code: 'content_too_large', message: `an upload must be at most ${bytesMax} octets long here` };
}

function rulesOf(declared: readonly Served[]): readonly FileRule[] {
  return declared.flatMap(({ collection: { files } }) =>
    [...(files?.values() ?? [])].map(({ rule }) => rule),
  );
}
