/**
 * Files in a bucket of S3, or of a store that speaks its protocol. Each key is an object. What the bucket answers is believed where it can be
 * checked: what it keeps is compared with what it was sent, and what it gives with what was asked for, so that neither a page of a proxy nor
 * octets of another object are ever passed on as a file.
 */
import { Readable } from 'node:stream';
import { ConfigurationError } from '../../config/inspection.ts';
import type { Extent } from '../../http/syntax/range.ts';
import type { Observe } from '../../observe/observation.ts';
import { ignoreError, ownEmitter } from '../../observe/own-emitter.ts';
import { StoreUnavailable } from '../../store/store.ts';
import {
  FileMissing,
  fileSystemFailure,
  isPlaceKey,
  type KeptFile,
  type Place,
  PlaceFull,
  partsOfKey,
} from '../place.ts';
import { openObject } from './bucket-octets.ts';
import { readListing, readUploads, type Uploads } from './s3-answers.ts';
import { BucketRefusal, type BucketRequests } from './s3-requests.ts';
import { abortUpload, OctetsDiffer, putFile, type UploadBounds } from './s3-uploads.ts';

export type BucketPlaceOptions = {
  readonly requests: BucketRequests;
  readonly incoming: string;
  readonly observe: Observe;
  readonly bounds: UploadBounds;
};

/** Keys of one page: their XML is read in 3 ms. */
const pageKeysMax = 250;

/** How stores say that a quota or a disk is full: AWS has no such limit. */
const fullCodes: ReadonlySet<string> = new Set([
  ...['InsufficientStorage', 'NotEnoughSpace', 'QuotaExceeded', 'XMinioAdminBucketQuotaExceeded'],
  'XMinioStorageFull',
]);

/**
 * Looks at the bucket once. A bucket that cannot be reached now does not prevent the start; what an operator must correct does.
 * @throws ConfigurationError
 */
export async function openBucketPlace(options: BucketPlaceOptions): Promise<Place> {
  const { requests, observe } = options;
  try {
    await requests.ask(listCall('', { 'max-keys': '1' }), readListing);
    await requests.ask(uploadsCall('', { 'max-uploads': '1' }), readUploads).catch(ignoreUnknownCall);
  } catch (error) {
    if (!(error instanceof BucketRefusal)) throw error;
    const mistake = mistakeOf(requests, error);
    if (mistake !== undefined) throw new ConfigurationError([mistake], { cause: error });
    observe({ kind: 'bucket-failed', what: 'files are unavailable until the bucket answers', error });
  }
  return new BucketPlace(options);
}

/** Undefined for a failure that may pass. */
function mistakeOf(
  { location }: BucketRequests,
  { status, code, message, region }: BucketRefusal,
): string | undefined {
  const { bucket, origin } = location;
  const where = `the bucket ${bucket} of COMITY_FILES_URL, at ${origin},`;
  if (region !== undefined && region !== location.region && status !== 403) {
    return `${where} is in the region ${region}, not in ${location.region}: set region=${region}`;
  }
  switch (code) {
    case 'NoSuchBucket':
      return `${where} does not exist: make it, or correct the URL`;
    case 'InvalidAccessKeyId':
      return `${where} does not know the access key: correct COMITY_FILES_S3_ACCESS_KEY`;
    case 'SignatureDoesNotMatch':
      return `${where} refuses the signature: correct COMITY_FILES_S3_SECRET_KEY, and the region in the URL`;
    case 'ExpiredToken':
      return `${where} refuses the temporary credential, which has ended: renew it`;
    case 'RequestTimeTooSkewed':
      return `${where} refuses the time of this machine: set its clock`;
    default:
  }
  if (status === 403) {
    return `${where} refuses the access key (${message}): it must permit to get, put and delete objects, and to list them and multipart uploads`;
  }
  const isAnswer = status !== undefined && status >= 300 && status < 500 && ![408, 425, 429].includes(status);
  return isAnswer ? `${where} cannot be used: ${message}` : undefined;
}

class BucketPlace implements Place {
  readonly incoming: string;
  readonly isIncomingLocal = true;
  readonly #requests: BucketRequests;
  readonly #observe: Observe;
  readonly #bounds: UploadBounds;

  constructor({ requests, incoming, observe, bounds }: BucketPlaceOptions) {
    this.incoming = incoming;
    this.#requests = requests;
    this.#observe = observe;
    this.#bounds = bounds;
  }

  async keep(key: string, file: KeptFile): Promise<void> {
    partsOfKey(key);
    try {
      const object = { key, file, readBack: () => this.#readBack(key, file.bytes) };
      await putFile(this.#requests, object, this.#bounds);
    } catch (error) {
      if (error instanceof OctetsDiffer) await this.#removeObject(key).catch(ignoreError);
      throw this.#failure('a file could not be kept', error);
    }
  }

  async read(key: string, first: number, end: number, further: readonly Extent[] = []): Promise<Readable> {
    const octets = await this.#open(key, first, end);
    if (further.length === 0) return octets;
    const joined = ownEmitter(Readable.from(this.#inTurn(octets, key, further)), ignoreError);
    // Its iteration may never begin.
    return joined.once('close', () => octets.destroy());
  }

  async *#inTurn(octets: Readable, key: string, further: readonly Extent[]): AsyncGenerator<Uint8Array> {
    yield* octets;
    for (const { first, end } of further) yield* await this.#open(key, first, end);
  }

  async #open(key: string, first: number, end: number): Promise<Readable> {
    partsOfKey(key);
    const what = 'a file could not be read';
    const failed = (error: unknown): Error => this.#failure(what, error);
    try {
      return await openObject(this.#requests, { key, first, end, failed });
    } catch (error) {
      if (error instanceof FileMissing) throw error;
      throw failed(error);
    }
  }

  async remove(key: string): Promise<void> {
    partsOfKey(key);
    try {
      await this.#removeObject(key);
      await this.#abortUploads(key);
    } catch (error) {
      throw this.#failure('a file could not be removed', error);
    }
  }

  async *list(prefix: string): AsyncGenerator<{ readonly key: string; readonly bytes: number }> {
    const { location } = this.#requests;
    let next: string | undefined;
    do {
      const page = await this.#listPage(prefix, next);
      for (const { key: stored, bytes } of page.entries) {
        const key = stored.slice(location.prefix.length);
        if (stored.startsWith(location.prefix) && isPlaceKey(key)) yield { key, bytes };
      }
      next = page.next;
    } while (next !== undefined);
  }

  close(): Promise<void> {
    return this.#requests.close();
  }

  async #listPage(prefix: string, token: string | undefined) {
    const page = token === undefined ? {} : { 'continuation-token': token };
    const call = listCall(this.#requests.storeKey(prefix), { 'max-keys': String(pageKeysMax), ...page });
    try {
      return await this.#requests.ask(call, readListing);
    } catch (error) {
      throw this.#failure('files could not be listed', error);
    }
  }

  /** Reads a file whole, which compares it with its digest. */
  async #readBack(key: string, bytes: number): Promise<void> {
    try {
      const part = { key, first: 0, end: bytes, failed: asError };
      for await (const _ of await openObject(this.#requests, part));
    } catch (error) {
      if (error instanceof FileMissing)
        throw new OctetsDiffer('the bucket has not kept a file that it took', { cause: error });
      throw error;
    }
  }

  async #removeObject(key: string): Promise<void> {
    await this.#requests.ask({ method: 'DELETE', key, expects: [200, 204, 404] }, () => undefined);
  }

  /** Parts of an upload that was not completed are stored, and paid for, until it is aborted. */
  async #abortUploads(key: string): Promise<void> {
    const stored = this.#requests.storeKey(key);
    let after: Uploads['next'];
    do {
      const page: Record<string, string> =
        after === undefined ? {} : { 'key-marker': after.key, 'upload-id-marker': after.id };
      const found: Uploads = await this.#requests
        .ask(uploadsCall(stored, { 'max-uploads': String(pageKeysMax), ...page }), readUploads)
        .catch(ignoreUnknownCall);
      for (const upload of found.uploads) {
        if (upload.key === stored) await abortUpload(this.#requests, key, upload.id);
      }
      after = found.next;
    } while (after !== undefined);
  }

  /** Reports a failure of the bucket. @returns what callers expect */
  #failure(what: string, error: unknown): Error {
    if (error instanceof OctetsDiffer) this.#observe({ kind: 'bucket-differs', what, error });
    else if (error instanceof BucketRefusal) {
      if (error.status === 507 || fullCodes.has(error.code)) return new PlaceFull(what, { cause: error });
      this.#observe({ kind: 'bucket-failed', what, error });
    } else if (!(error instanceof FileMissing)) return fileSystemFailure(error, what);
    return new StoreUnavailable(what, { cause: error });
  }
}

function listCall(prefix: string, query: Readonly<Record<string, string>>) {
  const all = prefix === '' ? query : { ...query, prefix };
  return { method: 'GET', query: { 'list-type': '2', ...all }, expects: [200] } as const;
}

function uploadsCall(prefix: string, query: Readonly<Record<string, string>>) {
  return { method: 'GET', query: { uploads: '', prefix, ...query }, expects: [200] } as const;
}

/** A store without this call has no list of uploads. */
function ignoreUnknownCall(error: unknown): Uploads {
  if (error instanceof BucketRefusal && error.isUnknown) return { uploads: [], next: undefined };
  throw error;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
