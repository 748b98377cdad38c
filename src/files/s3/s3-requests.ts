/**
 * Requests to a bucket: signed (Signature Version 4, by aws4fetch, the payload hash included), repeated where a failure passes, and with
 * answers that are bounded in octets. Every request here may be repeated without a further effect. If the store refuses the time of a
 * request, its own clock is taken from then on: hosts whose clock is off by 15 minutes would otherwise be refused for ever.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { AwsV4Signer } from 'aws4fetch';
import type { BucketLocation } from '../../config/files-url.ts';
import { type OriginAnswer, type OriginRequests, RequestFailed } from '../../egress/origin-requests.ts';
import { AnswerUnfit, readStoreError, type StoreError } from './s3-answers.ts';

export type BucketCredential = {
  readonly accessKey: string;
  readonly secretKey: string;
  readonly sessionToken: string | undefined;
};

export type BucketRequestsOptions = {
  readonly location: BucketLocation;
  readonly credential: BucketCredential;
  readonly requests: OriginRequests;
  readonly attemptsMax: number;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
};

export type BucketCall = {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** A key of a place, in front of which the prefix is put; absent for the bucket itself. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly fields?: Readonly<Record<string, string>>;
  readonly content?: SentContent;
  /** Statuses that are answers; others are refusals. */
  readonly expects: readonly number[];
};

export type SentContent = {
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
  /** Begins anew for each attempt. */
  readonly open: () => AsyncIterable<Uint8Array>;
};

export type BucketAnswer = Pick<OriginAnswer, 'status' | 'fields'>;

/** The bucket refused the request, or could not be reached; attempts that might have helped were made. */
export class BucketRefusal extends Error {
  override readonly name = 'BucketRefusal';
  /** Undefined if there was no answer. */
  readonly status: number | undefined;
  /** Of S3, such as `NoSuchKey`; empty if the answer has none. */
  readonly code: string;
  readonly region: string | undefined;
  readonly passes: boolean;
  /** No octet moved for a long time: a caller has waited, and waits for one further attempt. */
  readonly isStall: boolean;
  readonly retryAfterMs: number | undefined;
  /** Time of the answer by the clock of the store, in milliseconds since the epoch. */
  readonly storeMs: number | undefined;

  constructor(
    message: string,
    facts: Partial<Omit<BucketRefusal, keyof Error | 'isUnknown'>> & { readonly cause?: unknown },
  ) {
    super(message, { cause: facts.cause });
    this.status = facts.status;
    this.code = facts.code ?? '';
    this.region = facts.region;
    this.passes = facts.passes ?? false;
    this.isStall = facts.isStall ?? false;
    this.retryAfterMs = facts.retryAfterMs;
    this.storeMs = facts.storeMs;
  }

  /** The store has not this request, or not with these fields. */
  get isUnknown(): boolean {
    return this.status === 501 || this.code === 'NotImplemented';
  }
}

const emptyHash = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
/** A page of 250 keys has 150 KB at most. */
const answerBytesMax = 1_048_576;
/** For the whole of such an answer: a store that sends an octet now and then would hold a connection for ever. */
const answerMs = 30_000;
const stallsMax = 2;
const pauseLeastMs = 100;
const pauseMostMs = 5000;
const passingStatuses: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);
/** Also those that a store sends with another status: octets that were damaged on the way, and errors after a 200. */
const passingCodes: ReadonlySet<string> = new Set([
  ...['BadDigest', 'InvalidDigest', 'XAmzContentSHA256Mismatch', 'IncompleteBody', 'RequestTimeout'],
  ...['InternalError', 'ServiceUnavailable', 'SlowDown', 'OperationAborted'],
]);
const passingFailures: ReadonlySet<string> = new Set(['dns', 'connect', 'timeout', 'reset']);

export class BucketRequests {
  readonly #options: BucketRequestsOptions;
  /** The clock of the store minus ours, in milliseconds, once it has refused ours. */
  #aheadMs = 0;
  /** False once the store has refused them as S3Proxy does. It compares the signed hash of the content all the same. */
  #sendsChecksums = true;

  constructor(options: BucketRequestsOptions) {
    this.#options = options;
  }

  get location(): BucketLocation {
    return this.#options.location;
  }

  /** The key as the store has it. */
  storeKey(key: string): string {
    return `${this.#options.location.prefix}${key}`;
  }

  /** An answer whose content the caller reads or destroys. @throws BucketRefusal */
  open(call: BucketCall): Promise<OriginAnswer> {
    return this.#repeat(call, async (answer) => answer);
  }

  /**
   * An answer with its whole content, read within the attempt. @param read makes a value of it; AnswerUnfit is a failure that may pass
   * @throws BucketRefusal
   */
  ask<T>(call: BucketCall, read: (text: string, answer: BucketAnswer) => T): Promise<T> {
    return this.#repeat(call, async (answer) => {
      const text = await readText(answer);
      const error = call.method === 'HEAD' ? undefined : readStoreError(text);
      if (error !== undefined) throw refusalOf(answer, error);
      return read(text, answer);
    });
  }

  close(): Promise<void> {
    return this.#options.requests.close();
  }

  async #repeat<T>(call: BucketCall, use: (answer: OriginAnswer) => Promise<T>): Promise<T> {
    const { attemptsMax } = this.#options;
    let hasSetClock = false;
    let stalls = 0;
    for (let attempt = 1; ; ) {
      const hadChecksum = this.#sendsChecksums && Object.keys(call.fields ?? {}).some(isChecksum);
      try {
        const answer = await this.#send(call);
        if (call.expects.includes(answer.status)) return await use(answer);
        throw await readRefusal(answer, call.method);
      } catch (error) {
        const refusal = asRefusal(error);
        if (refusal.code === 'RequestTimeTooSkewed' && refusal.storeMs !== undefined && !hasSetClock) {
          hasSetClock = true;
          this.#aheadMs = refusal.storeMs - this.#options.clock();
          continue;
        }
        if (refusal.isUnknown && hadChecksum) {
          this.#sendsChecksums = false;
          continue;
        }
        if (refusal.isStall) stalls += 1;
        if (!refusal.passes || attempt >= attemptsMax || stalls >= stallsMax) throw refusal;
        const most = Math.min(pauseLeastMs * 4 ** (attempt - 1), pauseMostMs);
        await pause(Math.min(refusal.retryAfterMs ?? most * (0.5 + Math.random() / 2), pauseMostMs));
        attempt += 1;
      }
    }
  }

  async #send({ method, key, query = {}, fields = {}, content }: BucketCall): Promise<OriginAnswer> {
    const { location, credential, requests, clock } = this.#options;
    const sentFields = Object.entries(fields).filter(([name]) => this.#sendsChecksums || !isChecksum(name));
    const parameters = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    const path = `${location.path}/${key === undefined ? '' : this.storeKey(key)}`;
    const target = parameters.length === 0 ? path : `${path}?${parameters.join('&')}`;
    const signer = new AwsV4Signer({
      method,
      url: `${location.origin}${target}`,
      headers: { ...Object.fromEntries(sentFields), 'x-amz-content-sha256': content?.sha256 ?? emptyHash },
      accessKeyId: credential.accessKey,
      secretAccessKey: credential.secretKey,
      ...(credential.sessionToken === undefined ? {} : { sessionToken: credential.sessionToken }),
      service: 's3',
      region: location.region,
      datetime: basicTime(clock() + this.#aheadMs),
    });
    const { headers } = await signer.sign();
    const signed: Record<string, string> = Object.fromEntries(headers);
    if (content !== undefined) signed['content-length'] = String(content.bytes);
    return requests.request({ method, path: target, fields: signed, content: content?.open() });
  }
}

function isChecksum(field: string): boolean {
  return field.startsWith('x-amz-checksum-');
}

/** ISO 8601 in the basic format, which signatures have: `20261130T180000Z`. */
function basicTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replaceAll('-', '').replaceAll(':', '')}Z`;
}

/** @throws BucketRefusal for content that is cut, or too long */
async function readText({ status, content }: OriginAnswer): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const timer = setTimeout(() => content.destroy(new Error(`it took over ${answerMs} ms`)), answerMs);
  try {
    for await (const chunk of content as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > answerBytesMax)
        throw new AnswerUnfit(`the answer of the bucket has over ${answerBytesMax} octets`);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof AnswerUnfit) throw error;
    throw new BucketRefusal('the answer of the bucket was cut', { status, passes: true, cause: error });
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(chunks).toString();
}

async function readRefusal(answer: OriginAnswer, method: string): Promise<BucketRefusal> {
  const text = await readText(answer);
  return refusalOf(answer, method === 'HEAD' ? undefined : readStoreError(text));
}

function refusalOf({ status, fields }: BucketAnswer, error: StoreError | undefined): BucketRefusal {
  const code = error?.code ?? '';
  const said = code === '' ? '' : ` ${code}: ${error?.message ?? ''}`;
  const seconds = Number(fields['retry-after'] ?? Number.NaN);
  const region = fields['x-amz-bucket-region'] ?? error?.region;
  const storeMs = Date.parse(fields.date ?? '');
  return new BucketRefusal(`the bucket answered ${status}${said}`, {
    status,
    code,
    region: typeof region === 'string' ? region : undefined,
    passes: passingStatuses.has(status) || passingCodes.has(code),
    retryAfterMs: seconds >= 0 ? seconds * 1000 : undefined,
    storeMs: Number.isNaN(storeMs) ? undefined : storeMs,
  });
}

function asRefusal(error: unknown): BucketRefusal {
  if (error instanceof BucketRefusal) return error;
  if (error instanceof RequestFailed) {
    const { failure, message } = error;
    const facts = { passes: passingFailures.has(failure), isStall: failure === 'timeout', cause: error };
    return new BucketRefusal(`the bucket was not reached: ${message}`, facts);
  }
  if (error instanceof AnswerUnfit) return new BucketRefusal(error.message, { passes: true, cause: error });
  throw error;
}
