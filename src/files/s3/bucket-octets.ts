/**
 * Octets of an object as a stream. A part is passed on only if the answer says that it is the part that was asked for; a file that is read
 * whole is compared with the digest in its key before its last octets go on. A stream that is cut goes on where it was, in a further request.
 */
import { createHash, type Hash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { OriginAnswer } from '../../egress/origin-requests.ts';
import { ignoreError, ownEmitter } from '../../observe/own-emitter.ts';
import { FileMissing, partsOfKey } from '../place.ts';
import { BucketRefusal, type BucketRequests } from './s3-requests.ts';
import { OctetsDiffer } from './s3-uploads.ts';

/** An answer that has begun: the octets of an object from one position to another, and the length of the whole object. */
type BegunPart = { readonly content: Readable; readonly total: number };

/** Cuts in a row that a stream survives; one after this many octets begins a new row. */
const cutsMax = 3;
const cutsForgottenBytes = 1_048_576;
const contentRange = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16})$/;
const digits = /^\d{1,16}$/;

/** A part of an object: from `first` up to but not including `end`. */
export type ObjectPart = {
  readonly key: string;
  readonly first: number;
  readonly end: number;
  /** Reports a failure that comes after the first octet. @returns the error that ends the stream */
  readonly failed: (error: unknown) => Error;
};

/** @throws FileMissing; BucketRefusal */
export async function openObject(requests: BucketRequests, part: ObjectPart): Promise<Readable> {
  const { key, first, end } = part;
  if (first === end) return openNothing(requests, key, end);
  const begun = await openPart(requests, key, first, end);
  const reopen = (at: number): Promise<BegunPart> => openPart(requests, key, at, end);
  return ownEmitter(new BucketOctets(begun, { ...part, reopen }), ignoreError);
}

/** Nothing of an object that is there and has this length, as a range cannot say. */
async function openNothing(requests: BucketRequests, key: string, end: number): Promise<Readable> {
  const call = { method: 'HEAD', key, expects: [200, 404] } as const;
  const { status, fields } = await requests.ask(call, (_text, answer) => answer);
  const length = fields['content-length'] ?? '';
  if (status === 404) throw new FileMissing('the bucket has no such object');
  if (!digits.test(length))
    throw new BucketRefusal('the bucket does not say the length of an object', { status });
  if (Number(length) < end) throw new FileMissing(`an object has ${length} octets of at least ${end}`);
  return ownEmitter(Readable.from([]), ignoreError);
}

async function openPart(
  requests: BucketRequests,
  key: string,
  first: number,
  end: number,
): Promise<BegunPart> {
  const fields = { range: `bytes=${first}-${end - 1}` };
  let answer: OriginAnswer;
  try {
    answer = await requests.open({ method: 'GET', key, fields, expects: [200, 206] });
  } catch (error) {
    if (!(error instanceof BucketRefusal)) throw error;
    if (error.code === 'NoSuchKey') throw new FileMissing('the bucket has no such object', { cause: error });
    if (error.status === 416) throw new FileMissing('an object is shorter than its file', { cause: error });
    throw error;
  }
  const total = judgeAnswer(answer, first, end);
  if (typeof total === 'number') return { content: answer.content, total };
  answer.content.destroy();
  throw total;
}

/** @returns the length of the whole object, or why the content of the answer is not the part that was asked for */
function judgeAnswer({ status, fields }: OriginAnswer, first: number, end: number): number | Error {
  const refused = (message: string): Error => new BucketRefusal(message, { status });
  if ((fields['content-encoding'] ?? 'identity') !== 'identity') {
    return refused('the bucket gave a file with a content coding, as a proxy may add one');
  }
  const length = fields['content-length'];
  if (length !== undefined && Number(length) !== end - first) {
    if (status === 200) return refused('the bucket gave something whole in place of a part');
    if (Number(length) > end - first) return refused('the bucket gave more than the part that was asked for');
  }
  if (status === 200) {
    // Perhaps the whole file: its digest decides.
    return first === 0 && length !== undefined
      ? end
      : refused('the bucket gave something whole in place of a part');
  }
  const [, from, to, total] = contentRange.exec(fields['content-range'] ?? '') ?? [];
  if (total === undefined) return refused('the bucket does not say which part of an object it gave');
  if (Number(total) < end) return new FileMissing(`an object has ${total} octets of at least ${end}`);
  if (Number(from) !== first || Number(to) !== end - 1) {
    return refused(`the bucket gave the octets ${from} to ${to} in place of ${first} to ${end - 1}`);
  }
  return Number(total);
}

type PartOptions = ObjectPart & {
  /** Begins anew at a position. */
  readonly reopen: (at: number) => Promise<BegunPart>;
};

/**
 * Modes: giving, while an answer is read; cut, while a further one is awaited; over. Each chunk of an answer is passed on when it comes, and
 * the answer waits while its reader does.
 */
class BucketOctets extends Readable {
  readonly #options: PartOptions;
  /** Of a whole file. */
  readonly #hash: Hash | undefined;
  #content: Readable | undefined;
  #at: number;
  #cuts = 0;
  #cutAt: number;

  constructor(begun: BegunPart, options: PartOptions) {
    super({ highWaterMark: 1 });
    this.#options = options;
    this.#at = options.first;
    this.#cutAt = options.first;
    const isWhole = options.first === 0 && options.end === begun.total;
    this.#hash = isWhole ? createHash('sha256') : undefined;
    this.#follow(begun.content);
  }

  override _read(): void {
    this.#content?.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#content?.destroy();
    this.#content = undefined;
    done(error);
  }

  #follow(content: Readable): void {
    this.#content = content;
    content.on('data', (octets: Buffer) => this.#give(content, octets));
    content.on('end', () => this.#leave(content, undefined));
    content.on('error', (error) => this.#leave(content, error));
    content.on('close', () => this.#leave(content, undefined));
    content.pause();
  }

  #give(content: Readable, octets: Buffer): void {
    if (this.#content !== content) return;
    const { end, key } = this.#options;
    this.#at += octets.length;
    if (this.#at > end) {
      this.#fail(new BucketRefusal('the bucket gave more than the part that was asked for', {}));
      return;
    }
    this.#hash?.update(octets);
    if (this.#at < end) {
      if (!this.push(octets)) content.pause();
      return;
    }
    this.#content = undefined;
    if (this.#hash !== undefined && this.#hash.digest('hex') !== partsOfKey(key).digest) {
      content.destroy();
      this.#fail(new OctetsDiffer('the bucket gave octets with another SHA-256 than the file has'));
      return;
    }
    // What is left of the answer is its end, after which the connection is free.
    content.resume();
    this.push(octets);
    this.push(null);
  }

  /** An answer is over before the part is. */
  #leave(content: Readable, error: Error | undefined): void {
    if (this.#content !== content) return;
    this.#content = undefined;
    content.destroy();
    if (this.#at - this.#cutAt > cutsForgottenBytes) this.#cuts = 0;
    this.#cutAt = this.#at;
    this.#cuts += 1;
    if (this.#cuts > cutsMax) {
      this.#fail(new BucketRefusal('the bucket cut the octets of a file', { cause: error }));
      return;
    }
    this.#options.reopen(this.#at).then(
      (begun) => {
        if (this.destroyed) begun.content.destroy();
        else {
          this.#follow(begun.content);
          begun.content.resume();
        }
      },
      (failure: unknown) => this.#fail(failure),
    );
  }

  #fail(error: unknown): void {
    if (!this.destroyed) this.destroy(this.#options.failed(error));
  }
}
