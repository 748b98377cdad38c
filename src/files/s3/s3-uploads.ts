/**
 * Puts a local file into a bucket, at once or in parts, and makes sure that the bucket has kept these octets. Each request carries the
 * SHA-256 of its octets, which the store checks. What the store then says of the object is compared: its SHA-256, or else its tag, which is an
 * MD5 for most stores; where neither proves anything, as with objects that the store encrypts, the object is read once.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { ignoreError, ownEmitter } from '../../observe/own-emitter.ts';
import { inParallel } from '../copy-files.ts';
import type { KeptFile } from '../place.ts';
import { type CompletedPart, type Evidence, readCompleted, readUploadId, writeParts } from './s3-answers.ts';
import { type BucketAnswer, BucketRefusal, type BucketRequests } from './s3-requests.ts';

export type UploadBounds = {
  /** Longest file that one request puts. */
  readonly wholeBytesMax: number;
  readonly partBytesMin: number;
};

/** The bucket says that it has kept other octets than it was sent. */
export class OctetsDiffer extends Error {
  override readonly name = 'OctetsDiffer';
}

/** Throws unless the object has the octets of its key. */
export type ReadBack = () => Promise<void>;

/** Parts of one file that are sent at the same time. */
const partsAtOnce = 3;
/** Of OpenStack Swift as it is installed; AWS has 10,000. */
const partsMax = 1000;
/** 64 uploads at once took 56 MB more memory than none, and 143 MB with 512 KiB. */
const readBytesMax = 64 * 1024;
const MiB = 1_048_576;

/**
 * @param readBack asked where what the store says proves nothing
 * @throws BucketRefusal; OctetsDiffer; errors of the file system
 */
export async function putFile(
  requests: BucketRequests,
  object: { readonly key: string; readonly file: KeptFile; readonly readBack: ReadBack },
  bounds: UploadBounds,
): Promise<void> {
  const { key, file, readBack } = object;
  const { size } = await stat(file.path);
  if (size !== file.bytes) throw new Error(`${file.path} has ${size} octets in place of ${file.bytes}`);
  const isProven =
    size <= bounds.wholeBytesMax
      ? await putWhole(requests, key, file)
      : await new PartedUpload(requests, { key, file, partBytesMin: bounds.partBytesMin }).put();
  if (!isProven) await readBack();
}

/** @returns whether the answer proves that the octets were kept */
async function putWhole(
  requests: BucketRequests,
  key: string,
  { path, bytes, sha256 }: KeptFile,
): Promise<boolean> {
  const digest = Buffer.from(sha256);
  let md5 = '';
  const content = {
    bytes,
    sha256: digest.toString('hex'),
    open: () =>
      octetsOf(path, 0, bytes, (hex) => {
        md5 = hex;
      }),
  };
  const fields = {
    'x-amz-checksum-sha256': digest.toString('base64'),
    'content-type': 'application/octet-stream',
  };
  const evidence = await requests.ask(
    { method: 'PUT', key, fields, content, expects: [200] },
    (_text, answer) => evidenceOf(answer),
  );
  return proves(evidence, { sha256: digest.toString('base64'), tag: md5 });
}

type Part = { readonly number: number; readonly first: number; readonly end: number };

class PartedUpload {
  readonly #requests: BucketRequests;
  readonly #key: string;
  readonly #file: KeptFile;
  readonly #partBytes: number;
  readonly #done: CompletedPart[] = [];
  readonly #md5s: Buffer[] = [];
  readonly #digests: Buffer[] = [];
  /** A store that says no checksum of a part may know none in the list of parts. */
  #areChecksumsKnown = true;

  constructor(
    requests: BucketRequests,
    {
      key,
      file,
      partBytesMin,
    }: { readonly key: string; readonly file: KeptFile; readonly partBytesMin: number },
  ) {
    this.#requests = requests;
    this.#key = key;
    this.#file = file;
    this.#partBytes = Math.max(partBytesMin, Math.ceil(file.bytes / partsMax / MiB) * MiB);
  }

  /** Leaves no upload behind if it fails. @returns whether the answers prove that the octets were kept */
  async put(): Promise<boolean> {
    const fields = { 'x-amz-checksum-algorithm': 'SHA256', 'content-type': 'application/octet-stream' };
    const id = await this.#requests.ask(
      { method: 'POST', key: this.#key, query: { uploads: '' }, fields, expects: [200] },
      readUploadId,
    );
    try {
      await this.#putParts(id);
      return this.#judge(await this.#complete(id));
    } catch (error) {
      // The first failure is the one to report; `remove` of the key finds an upload that could not be ended.
      await abortUpload(this.#requests, this.#key, id).catch(ignoreError);
      throw error;
    }
  }

  async #putParts(id: string): Promise<void> {
    await inParallel(this.#plan(), (part) => this.#putPart(id, part), { atOnce: partsAtOnce });
  }

  *#plan(): Generator<Part, undefined> {
    const { bytes } = this.#file;
    for (let number = 1, first = 0; first < bytes; number += 1, first += this.#partBytes) {
      yield { number, first, end: Math.min(first + this.#partBytes, bytes) };
    }
  }

  async #putPart(id: string, { number, first, end }: Part): Promise<void> {
    const { path } = this.#file;
    const sha256 = createHash('sha256');
    const md5 = createHash('md5');
    for await (const octets of octetsOf(path, first, end)) {
      sha256.update(octets);
      md5.update(octets);
    }
    const [digest, tag] = [sha256.digest(), md5.digest()];
    const checksum = digest.toString('base64');
    const content = {
      bytes: end - first,
      sha256: digest.toString('hex'),
      open: () => octetsOf(path, first, end),
    };
    const query = { partNumber: String(number), uploadId: id };
    const fields = { 'x-amz-checksum-sha256': checksum };
    const call = { method: 'PUT', key: this.#key, query, fields, content, expects: [200] } as const;
    const evidence = await this.#requests.ask(call, (_text, answer) => evidenceOf(answer));
    proves(evidence, { sha256: checksum, tag: tag.toString('hex') });
    if (evidence.etag === undefined)
      throw new BucketRefusal('the bucket gave no ETag for a part', { status: 200 });
    if (evidence.sha256 === undefined) this.#areChecksumsKnown = false;
    this.#done[number - 1] = { number, etag: evidence.etag, sha256: checksum };
    this.#md5s[number - 1] = tag;
    this.#digests[number - 1] = digest;
  }

  async #complete(id: string): Promise<Evidence> {
    const text = Buffer.from(writeParts(this.#done, this.#areChecksumsKnown));
    const content = {
      bytes: text.length,
      sha256: createHash('sha256').update(text).digest('hex'),
      open: () => once(text),
    };
    const call = {
      method: 'POST',
      key: this.#key,
      query: { uploadId: id },
      content,
      expects: [200],
    } as const;
    let lost: BucketRefusal | undefined;
    try {
      const evidence = await this.#requests.ask(call, readCompleted);
      // RADOS Gateway 16 answers an empty tag.
      if (evidence.etag !== '' || evidence.sha256 !== undefined) return evidence;
    } catch (error) {
      // An attempt whose answer was lost may have completed the upload.
      if (!(error instanceof BucketRefusal) || error.code !== 'NoSuchUpload') throw error;
      lost = error;
    }
    const fields = { 'x-amz-checksum-mode': 'ENABLED' };
    const look = { method: 'HEAD', key: this.#key, fields, expects: [200, 404] } as const;
    const found = await this.#requests.ask(look, (_text, answer) => answer);
    if (found.status === 404) throw lost ?? new OctetsDiffer('the bucket has not kept a file that it took');
    return evidenceOf(found);
  }

  /** The digests of an object in parts are those of the digests of its parts, and have their number at the end. */
  #judge(evidence: Evidence): boolean {
    const count = `-${this.#done.length}`;
    const sha256 = createHash('sha256').update(Buffer.concat(this.#digests)).digest('base64');
    const tag = createHash('md5').update(Buffer.concat(this.#md5s)).digest('hex');
    return proves(evidence, { sha256: `${sha256}${count}`, tag: `${tag}${count}` });
  }
}

/** Without effect if there is no such upload. */
export async function abortUpload(requests: BucketRequests, key: string, id: string): Promise<void> {
  const call = { method: 'DELETE', key, query: { uploadId: id }, expects: [200, 204, 404] } as const;
  await requests.ask(call, () => undefined);
}

function evidenceOf({ fields }: BucketAnswer): Evidence {
  const sha256 = fields['x-amz-checksum-sha256'];
  return { etag: fields.etag, sha256: typeof sha256 === 'string' ? sha256 : undefined };
}

/**
 * @returns false if what the store says proves nothing: it says no checksum, and a tag need not be an MD5
 * @throws OctetsDiffer
 */
function proves(evidence: Evidence, sent: { readonly sha256: string; readonly tag: string }): boolean {
  if (evidence.sha256 === undefined) return evidence.etag?.replaceAll('"', '') === sent.tag;
  if (evidence.sha256 === sent.sha256) return true;
  throw new OctetsDiffer('the bucket has kept octets with another SHA-256 than it was sent');
}

/** @param done gets the MD5 of the octets, in hexadecimal */
async function* octetsOf(
  path: string,
  first: number,
  end: number,
  done?: (md5: string) => void,
): AsyncGenerator<Uint8Array> {
  const md5 = done === undefined ? undefined : createHash('md5');
  if (first < end) {
    const options = { start: first, end: end - 1, highWaterMark: readBytesMax };
    const octets = ownEmitter(createReadStream(path, options), ignoreError);
    for await (const chunk of octets as AsyncIterable<Buffer>) {
      md5?.update(chunk);
      yield chunk;
    }
  }
  if (md5 !== undefined) done?.(md5.digest('hex'));
}

async function* once(octets: Uint8Array): AsyncGenerator<Uint8Array> {
  yield octets;
}
