/**
 * A bucket of S3 in memory that is strict where other doubles are not: it checks signatures, the digest of each content, conditions, the
 * smallest part of an upload and the order of parts; its pages have two keys; its tags of multipart uploads end with `-N`. Faults happen on
 * demand (s3-faults.ts). It knows what src/files/s3 uses, and ListParts.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type Ending, listen } from './listening.ts';
import { type Fault, type FaultKind, type FaultOptions, takeFault } from './s3-faults.ts';
import { type Answer, type S3Call, type S3Object, sendAnswer, xmlError } from './s3-messages.ts';
import { refuseSignature, type S3Credential } from './s3-signature.ts';

type Upload = { readonly key: string; readonly checksums: boolean; readonly parts: Map<number, S3Object> };

export type S3DoubleOptions = {
  readonly bucket?: string;
  readonly region?: string;
  readonly credential?: S3Credential;
  /** Keys, uploads or parts of one page. */
  readonly pageMax?: number;
  /** False: ignores `x-amz-checksum-sha256`, and tells no tag at a completion, as RADOS Gateway 16; `refused`: does not take it, as S3Proxy. */
  readonly checksums?: boolean | 'refused';
  /** False: tags are no MD5, as those of objects that the store encrypts. */
  readonly md5Tags?: boolean;
  readonly listsUploads?: boolean;
};

export type S3Double = {
  readonly url: string;
  /** As in COMITY_FILES_URL. */
  readonly filesUrl: (prefix?: string) => string;
  readonly credential: S3Credential;
  readonly objects: Map<string, S3Object>;
  readonly uploads: ReadonlyMap<string, Upload>;
  /** Answered requests, oldest first. */
  readonly calls: readonly S3Call[];
  /** Most connections at one time. */
  readonly connectionsSeen: () => number;
  /** The clock of the store minus that of this machine. */
  clockAheadMs: number;
  fault(kind: FaultKind, options?: FaultOptions): void;
  close(): Promise<void>;
};

/** What is wrong with a request, as S3 says it. */
export class S3Error extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string) {
    super(code);
    this.status = status;
    this.code = code;
  }
}

const smallestPartBytes = 5 * 1_048_576;
const space = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"';
const defaultCredential = { accessKey: 'AKIDOUBLE', secretKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYDOUBLEKEY' };

/** @param context with whose end it closes; without it the caller closes */
export async function startS3Double(options: S3DoubleOptions = {}, context?: Ending): Promise<S3Double> {
  const store = new BucketInMemory(options);
  const { bucket, region, credential } = store;
  const calls: S3Call[] = [];
  const faults: Fault[] = [];
  let most = 0;
  const server = createServer(async (request, response) => {
    most = Math.max(most, listening.sockets.size);
    const url = new URL(request.url ?? '', 'http://double');
    const key = decodeURIComponent(url.pathname).replace(`/${bucket}/`, '');
    const call = { method: request.method ?? '', key, query: url.searchParams };
    response.on('close', () => calls.push({ ...call, status: response.statusCode }));
    response.sendDate = false;
    response.setHeader('Date', new Date(Date.now() + double.clockAheadMs).toUTCString());
    response.setHeader('Connection', 'keep-alive');
    const answer = (): Promise<Answer> => store.answer(request, call, Date.now() + double.clockAheadMs);
    const fault = takeFault(faults, call);
    try {
      if (fault === undefined) sendAnswer(response, request, await answer());
      else await fault.happen({ request, response, call, answer, objects: store.objects });
    } catch (error) {
      // The program that sent the request was killed.
      if (!request.destroyed) throw error;
    }
  });
  const listening = await listen(server, context);
  const double: S3Double = {
    ...{ url: listening.url, credential, calls, objects: store.objects, uploads: store.uploads },
    filesUrl: (prefix = '') => `s3://${bucket}${prefix}?endpoint=${listening.url}&region=${region}`,
    connectionsSeen: () => most,
    clockAheadMs: 0,
    fault: (kind, rules = {}) => faults.push({ kind, left: rules.times ?? 1, ...rules }),
    close: listening.close,
  };
  return double;
}

class BucketInMemory {
  readonly bucket: string;
  readonly region: string;
  readonly credential: S3Credential;
  readonly objects = new Map<string, S3Object>();
  readonly uploads = new Map<string, Upload>();
  readonly #options: S3DoubleOptions;
  #count = 0;

  constructor(options: S3DoubleOptions) {
    this.#options = options;
    this.bucket = options.bucket ?? 'files';
    this.region = options.region ?? 'us-east-1';
    this.credential = options.credential ?? defaultCredential;
  }

  async answer(request: IncomingMessage, call: Omit<S3Call, 'status'>, nowMs: number): Promise<Answer> {
    const content = await buffer(request);
    try {
      const refused = refuseSignature(request, { credential: this.credential, region: this.region, nowMs });
      if (refused !== undefined) throw new S3Error(refused.status, refused.code);
      const path = new URL(request.url ?? '', 'http://double').pathname;
      if (!path.startsWith(`/${this.bucket}/`)) throw new S3Error(404, 'NoSuchBucket');
      this.#checkContent(request, content);
      return call.key === '' ? this.#answerBucket(call) : this.#answerObject(request, call, content);
    } catch (error) {
      if (!(error instanceof S3Error)) throw error;
      const isElsewhere = error.code === 'AuthorizationHeaderMalformed';
      const answer = xmlError(error.status, error.code, isElsewhere ? this.region : '');
      return request.method === 'HEAD' ? { status: error.status } : answer;
    }
  }

  #checkContent({ headers, method }: IncomingMessage, content: Buffer): void {
    const sent = method === 'PUT' || method === 'POST';
    if (sent && headers['content-length'] === undefined) throw new S3Error(411, 'MissingContentLength');
    if (headers['x-amz-content-sha256'] !== digestOf('sha256', content, 'hex')) {
      throw new S3Error(400, 'XAmzContentSHA256Mismatch');
    }
    const md5 = headers['content-md5'];
    if (md5 !== undefined && md5 !== digestOf('md5', content, 'base64')) throw new S3Error(400, 'BadDigest');
    const checksum = headers['x-amz-checksum-sha256'];
    if (
      this.#options.checksums === 'refused' &&
      Object.keys(headers).some((name) => /^x-amz-checksum-/.test(name))
    )
      throw new S3Error(501, 'NotImplemented');
    if (this.#options.checksums === false || checksum === undefined) return;
    if (checksum !== digestOf('sha256', content, 'base64')) throw new S3Error(400, 'BadDigest');
  }

  #answerBucket({ method, query }: Omit<S3Call, 'status'>): Answer {
    if (method !== 'GET') throw new S3Error(405, 'MethodNotAllowed');
    if (query.has('uploads')) return this.#listUploads(query);
    if (query.get('list-type') !== '2') throw new S3Error(501, 'NotImplemented');
    const { page, after } = this.#page(this.objects, query, query.get('continuation-token'));
    const entries = page.map(
      ([key, { octets, etag }]) =>
        `<Contents><Key>${key}</Key><Size>${octets.length}</Size><ETag>${escaped(etag)}</ETag></Contents>`,
    );
    // A token with characters that mean something else in a query.
    const next =
      after === undefined ? '' : `<NextContinuationToken>${tokenOf(after)}</NextContinuationToken>`;
    return xml(
      `<ListBucketResult ${space}><IsTruncated>${after !== undefined}</IsTruncated>${next}${entries.join('')}</ListBucketResult>`,
    );
  }

  #listUploads(query: URLSearchParams): Answer {
    if (this.#options.listsUploads === false) throw new S3Error(501, 'NotImplemented');
    const marker = query.get('key-marker');
    const from = marker === null ? null : tokenOf(`${marker} ${query.get('upload-id-marker')}`);
    const byKey = new Map([...this.uploads].map(([id, { key }]) => [`${key} ${id}`, id]));
    const { page, after } = this.#page(byKey, query, from);
    const entries = page.map(
      ([name, id]) => `<Upload><Key>${name.split(' ')[0]}</Key><UploadId>${escaped(id)}</UploadId></Upload>`,
    );
    const [key, id] = after?.split(' ') ?? [];
    const next =
      after === undefined
        ? ''
        : `<NextKeyMarker>${key}</NextKeyMarker><NextUploadIdMarker>${escaped(id ?? '')}</NextUploadIdMarker>`;
    return xml(
      `<ListMultipartUploadsResult ${space}><IsTruncated>${after !== undefined}</IsTruncated>${next}${entries.join('')}</ListMultipartUploadsResult>`,
    );
  }

  #page<T>(all: ReadonlyMap<string, T>, query: URLSearchParams, token: string | null) {
    const prefix = query.get('prefix') ?? '';
    const from = token === null ? '' : nameOf(token);
    const found = [...all]
      .filter(([name]) => name.startsWith(prefix) && name > from)
      .sort(([one], [other]) => (one < other ? -1 : 1));
    const page = found.slice(0, this.#options.pageMax ?? 2);
    return { page, after: page.length < found.length ? page.at(-1)?.[0] : undefined };
  }

  #answerObject(
    request: IncomingMessage,
    { method, key, query }: Omit<S3Call, 'status'>,
    content: Buffer,
  ): Answer {
    const id = query.get('uploadId');
    switch (method) {
      case 'HEAD':
      case 'GET':
        return id === null ? this.#get(request, key) : this.#listParts(key, id);
      case 'PUT':
        return id === null
          ? this.#put(request, key, content)
          : this.#putPart(request, { key, id, number: Number(query.get('partNumber')) }, content);
      case 'POST':
        if (query.has('uploads')) return this.#createUpload(request, key);
        return this.#complete(key, id ?? '', content.toString());
      case 'DELETE':
        if (id === null) this.objects.delete(key);
        else if (this.uploads.get(id)?.key !== key) throw new S3Error(404, 'NoSuchUpload');
        else this.uploads.delete(id);
        return { status: 204 };
      default:
        throw new S3Error(405, 'MethodNotAllowed');
    }
  }

  #get({ headers, method }: IncomingMessage, key: string): Answer {
    const object = this.objects.get(key);
    if (object === undefined) throw new S3Error(404, 'NoSuchKey');
    const { octets, etag, checksum } = object;
    const shown = headers['x-amz-checksum-mode'] === 'ENABLED' ? checksum : undefined;
    const fields = { etag, 'accept-ranges': 'bytes', 'x-amz-checksum-sha256': shown };
    if (method === 'HEAD')
      return { status: 200, fields: { ...fields, 'content-length': String(octets.length) } };
    const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(headers.range ?? '') ?? [];
    if (from === '' && to === '') return { status: 200, fields, content: octets };
    const first = from === '' ? Math.max(0, octets.length - Number(to)) : Number(from);
    const last = from === '' || to === '' ? octets.length - 1 : Math.min(Number(to), octets.length - 1);
    if (first >= octets.length || last < first) throw new S3Error(416, 'InvalidRange');
    const range = `bytes ${first}-${last}/${octets.length}`;
    return {
      status: 206,
      fields: { ...fields, 'content-range': range },
      content: octets.subarray(first, last + 1),
    };
  }

  #put({ headers }: IncomingMessage, key: string, octets: Buffer): Answer {
    const known = this.objects.get(key);
    if (headers['if-none-match'] === '*' && known !== undefined) throw new S3Error(412, 'PreconditionFailed');
    const expected = headers['if-match'];
    if (expected !== undefined && known === undefined) throw new S3Error(404, 'NoSuchKey');
    if (expected !== undefined && known?.etag !== expected) throw new S3Error(412, 'PreconditionFailed');
    const object = this.#objectOf(octets, headers['x-amz-checksum-sha256'] !== undefined);
    this.objects.set(key, object);
    return kept(object);
  }

  #objectOf(octets: Buffer, checksums: boolean): S3Object {
    return {
      octets,
      etag: this.#tag(digestOf('md5', octets, 'hex')),
      checksum:
        checksums && this.#options.checksums !== false ? digestOf('sha256', octets, 'base64') : undefined,
    };
  }

  #tag(md5: string): string {
    this.#count += 1;
    return this.#options.md5Tags === false ? `"opaque-${this.#count}"` : `"${md5}"`;
  }

  #createUpload({ headers }: IncomingMessage, key: string): Answer {
    this.#count += 1;
    const id = `upload/${this.#count}+=&`;
    this.uploads.set(id, {
      key,
      checksums: headers['x-amz-checksum-algorithm'] === 'SHA256',
      parts: new Map(),
    });
    const shown = escaped(id);
    return xml(
      `<InitiateMultipartUploadResult ${space}><Bucket>${this.bucket}</Bucket><Key>${key}</Key><UploadId>${shown}</UploadId></InitiateMultipartUploadResult>`,
    );
  }

  #uploadOf(key: string, id: string): Upload {
    const upload = this.uploads.get(id);
    if (upload?.key !== key) throw new S3Error(404, 'NoSuchUpload');
    return upload;
  }

  #putPart(
    { headers }: IncomingMessage,
    { key, id, number }: { readonly key: string; readonly id: string; readonly number: number },
    octets: Buffer,
  ): Answer {
    const { parts, checksums } = this.#uploadOf(key, id);
    if (!(number >= 1 && number <= 10_000)) throw new S3Error(400, 'InvalidArgument');
    if (checksums && this.#options.checksums !== false && headers['x-amz-checksum-sha256'] === undefined)
      throw new S3Error(400, 'InvalidRequest');
    const part = this.#objectOf(octets, checksums);
    parts.set(number, part);
    return kept(part);
  }

  #listParts(key: string, id: string): Answer {
    const { parts } = this.#uploadOf(key, id);
    const listed = [...parts].map(
      ([number, { etag, octets }]) =>
        `<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag><Size>${octets.length}</Size></Part>`,
    );
    return xml(
      `<ListPartsResult ${space}><IsTruncated>false</IsTruncated>${listed.join('')}</ListPartsResult>`,
    );
  }

  #complete(key: string, id: string, text: string): Answer {
    const { parts, checksums } = this.#uploadOf(key, id);
    const named = [...text.matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part = '']) => ({
      number: Number(/<PartNumber>(\d+)</.exec(part)?.[1]),
      etag: /<ETag>(.*?)</.exec(part)?.[1] ?? '',
      checksum: /<ChecksumSHA256>(.*?)</.exec(part)?.[1],
    }));
    if (named.length === 0) throw new S3Error(400, 'MalformedXML');
    const chosen = named.map(({ number, etag, checksum }, at) => {
      const part = parts.get(number);
      if (at > 0 && number <= (named[at - 1]?.number ?? 0)) throw new S3Error(400, 'InvalidPartOrder');
      if (part === undefined || part.etag !== etag) throw new S3Error(400, 'InvalidPart');
      if (part.checksum !== checksum) throw new S3Error(400, 'InvalidPart');
      if (at < named.length - 1 && part.octets.length < smallestPartBytes)
        throw new S3Error(400, 'EntityTooSmall');
      return part;
    });
    const md5s = chosen.map(({ octets }) => createHash('md5').update(octets).digest());
    const digests = chosen.map(({ octets }) => createHash('sha256').update(octets).digest());
    const count = `-${chosen.length}`;
    const etag = this.#tag(`${digestOf('md5', Buffer.concat(md5s), 'hex')}${count}`);
    const hasChecksum = checksums && this.#options.checksums !== false;
    const checksum = hasChecksum
      ? `${digestOf('sha256', Buffer.concat(digests), 'base64')}${count}`
      : undefined;
    this.objects.set(key, { octets: Buffer.concat(chosen.map(({ octets }) => octets)), etag, checksum });
    this.uploads.delete(id);
    const told = this.#options.checksums === false ? '' : escaped(etag);
    const shown = checksum === undefined ? '' : `<ChecksumSHA256>${checksum}</ChecksumSHA256>`;
    return xml(
      `<CompleteMultipartUploadResult ${space}><Key>${key}</Key><ETag>${told}</ETag>${shown}</CompleteMultipartUploadResult>`,
    );
  }
}

function kept({ etag, checksum }: S3Object): Answer {
  return { status: 200, fields: { etag, 'x-amz-checksum-sha256': checksum } };
}

function xml(content: string): Answer {
  const declared = `<?xml version="1.0" encoding="UTF-8"?>\n${content}`;
  return { status: 200, fields: { 'content-type': 'application/xml' }, content: declared };
}

export function digestOf(algorithm: 'md5' | 'sha256', octets: Buffer, form: 'hex' | 'base64'): string {
  return createHash(algorithm).update(octets).digest(form);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
}

function tokenOf(name: string): string {
  return `+/=${Buffer.from(name).toString('base64')}`;
}

function nameOf(token: string): string {
  if (!token.startsWith('+/=')) throw new S3Error(400, 'InvalidArgument');
  return Buffer.from(token.slice(3), 'base64').toString();
}
