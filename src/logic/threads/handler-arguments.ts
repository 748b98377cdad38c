/**
 * Arguments of a function on its thread: the message as a handler receives it (config/senders.ts), the event or the run as a
 * subscriber or a job does, and the calls that it may make. The text of a message is decoded only when the handler reads it.
 */
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import type { EventHandling, SubscribedEvent } from '../../config/inspect-functions.ts';
import type { JobRun } from '../../config/jobs.ts';
import {
  type ReceivedMessage,
  ResourceRefused,
  UnprocessableMessage,
  type Verify,
} from '../../config/senders.ts';
import { type FileFields, type FileValue, withOpenFiles } from '../../model/file.ts';
import { type JsonOptions, jsonTextOf, parseExactly } from '../../webhooks/exact-json.ts';
import { FunctionFailed } from '../function-failed.ts';
import { type Calls, CallWatch, callsOver, type Opened } from '../transaction/calls.ts';
import type { FromThread, GivenMessage, GivenUnjudged, Refusal, ThreadCall } from './handler-protocol.ts';

/** Octets of a decoded body. */
const decodedBytesMax = 256 * 1024 * 1024;

type Decode = (bytes: Uint8Array, options: { readonly maxOutputLength: number }) => Uint8Array;

const codings: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ['gzip', gunzipSync],
  ['x-gzip', gunzipSync],
  ['deflate', inflateSync],
  ['br', brotliDecompressSync],
  ['zstd', zstdDecompressSync],
  ['identity', (bytes) => bytes],
]);

/** @param heapOctetsMax of the thread */
export function receivedMessage(message: GivenMessage, heapOctetsMax: number): ReceivedMessage {
  const { contentEncoding, jsonInForm, body: given, ...shown } = message;
  const body = typeof given === 'string' ? new Uint8Array(Buffer.from(given, 'base64')) : given;
  let known: string | undefined;
  const decode = (isJson: boolean): string => {
    if (known !== undefined && !isJson) return known;
    const octets = withoutCodings(body, contentEncoding);
    if (isJson) demandHeap(octets, heapOctetsMax);
    known ??= decodeText(octets);
    return known;
  };
  const text = (): string => decode(false);
  return {
    ...shown,
    body,
    text,
    json(options) {
      const json = jsonTextOf(decode(true), shown.contentType, jsonInForm);
      if (json === undefined) throw new UnprocessableMessage(`the form has no field ${jsonInForm}`);
      return parse(json, options);
    },
    form: () => new URLSearchParams(text()),
  };
}

/** Parsed values of shorter JSON take less than any thread has. */
const countedFrom = 1024 * 1024;

/** Octets of heap for each of these octets of JSON: of an object or an array, of a member or an element, of half a string. */
const octetsOfValues = new Uint8Array(256);
for (const [characters, octets] of [
  ['{[', 64],
  [',:', 8],
  ['"', 16],
] as const)
  for (const character of characters) octetsOfValues[character.charCodeAt(0)] = octets;

/** `JSON.parse` goes on over the limit of a thread's heap, and would take the memory of the whole program. */
function demandHeap(json: Uint8Array, heapOctetsMax: number): void {
  if (json.length < countedFrom) return;
  let octets = json.length;
  for (let at = 0; at < json.length; at += 1) octets += octetsOfValues[json[at] as number] as number;
  if (octets <= heapOctetsMax) return;
  throw new UnprocessableMessage(
    `the values of the body would take up to ${octets} octets, and a thread has ${heapOctetsMax} (COMITY_HANDLER_HEAP_BYTES_MAX)`,
  );
}

function parse(text: string, options: JsonOptions | undefined): unknown {
  try {
    return parseExactly(text, options);
  } catch (error) {
    throw new UnprocessableMessage(error instanceof RangeError ? error.message : 'the body is not JSON');
  }
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UnprocessableMessage('the body is not UTF-8');
  }
}

/** Content codings are listed in the order in which they were applied (RFC 9110 §8.4). */
function withoutCodings(body: Uint8Array, contentEncoding: string | null): Uint8Array {
  if (contentEncoding === null || contentEncoding.trim() === '') return body;
  let bytes = body;
  for (const coding of contentEncoding.split(',').reverse()) {
    const name = coding.trim().toLowerCase();
    const decode = codings.get(name);
    if (decode === undefined) throw new UnprocessableMessage('the body has an unknown content coding');
    try {
      bytes = decode(bytes, { maxOutputLength: decodedBytesMax });
    } catch {
      throw new UnprocessableMessage(`the body is not valid ${name}, or too large after decompression`);
    }
  }
  return bytes;
}

/**
 * Has a message judged by the function of its sender, called as a member so that `this` is the declaration.
 * @throws UnprocessableMessage if it returned false
 */
export async function judge(
  sender: { readonly verify?: Verify } | undefined,
  { of, body, fields, url, secrets }: GivenUnjudged,
): Promise<void> {
  if (sender?.verify === undefined) throw new Error(`the configuration has no verify for ${of}`);
  const headers = new Headers();
  for (let at = 0; at + 1 < fields.length; at += 2) headers.append(fields[at] ?? '', fields[at + 1] ?? '');
  const result: unknown = await sender.verify({ body, headers, url, secrets });
  if (result === false) throw new UnprocessableMessage('verify returned false');
  if (result !== true) throw new TypeError(`verify must return true or false, and returned ${typeof result}`);
}

/** The content of a subscriber's message; `before` only where the event has it. */
type EventContent = {
  readonly event: SubscribedEvent;
  readonly before?: SubscribedEvent['data']['object'];
};

/** @param body in base64 */
export function eventHandling(
  body: string,
  opened: Opened,
): Pick<EventHandling, 'event' | 'before' | 'after'> {
  const { event, before } = JSON.parse(Buffer.from(body, 'base64').toString()) as EventContent;
  const collection = event.type.slice(0, event.type.lastIndexOf('.'));
  for (const document of [event.data.object, before]) opened(collection, document);
  const after = event.type.endsWith('.deleted') ? undefined : event.data.object;
  return { event, before, after };
}

/** The content of a job's message. */
type JobContent = { readonly scheduledAt: string };

/** @param body in base64 */
export function jobRun(body: string): Pick<JobRun, 'scheduledAt'> {
  const { scheduledAt } = JSON.parse(Buffer.from(body, 'base64').toString()) as JobContent;
  return { scheduledAt: new Date(scheduledAt) };
}

// The calls of a handler in its thread: each is a message to the program. The number of concurrent calls of a run is bounded; further
// ones wait here, bounded by the thread's heap.

const callsUnderWayMax = 64;

type Result = string | Uint8Array<ArrayBuffer> | undefined;

type Waiting = {
  readonly call: ThreadCall;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: Error) => void;
};

export class ThreadCalls {
  readonly given: Calls;
  readonly #watch = new CallWatch('the function');
  readonly #run: number;
  readonly #post: (message: FromThread) => void;
  readonly #filesOf: (collection: string) => FileFields | undefined;
  readonly #underWay = new Map<number, Waiting>();
  readonly #waiting: Waiting[] = [];
  #seq = 0;
  #readings = 0;
  #over = false;

  /** @param filesOf the fields of a collection that hold files */
  constructor(
    run: number,
    post: (message: FromThread) => void,
    filesOf: (collection: string) => FileFields | undefined,
  ) {
    this.#run = run;
    this.#post = post;
    this.#filesOf = filesOf;
    this.given = callsOver(
      (call) => this.#call(call) as Promise<string | undefined>,
      this.#watch,
      this.opened,
    );
  }

  /** Gives the files of a document the method `open`. */
  readonly opened: Opened = (collection, document) =>
    withOpenFiles(document, this.#filesOf(collection), (file) => this.#read(file));

  /** The file stays open until its octets are read, the loop over them ends, or the run does. */
  async *#read(file: FileValue): AsyncGenerator<Uint8Array> {
    this.#readings += 1;
    const reading = this.#readings;
    try {
      for (;;) {
        const piece = (await this.#call({ do: 'read', reading, file })) as Uint8Array | undefined;
        if (piece === undefined) return;
        yield piece;
      }
    } finally {
      this.#post({ kind: 'close', run: this.#run, reading });
    }
  }

  /** Waits, after the handler returned, for calls that it did not await. Rejects if one of them failed. */
  settled(): Promise<void> {
    return this.#watch.settled();
  }

  /** Refuses all further calls. */
  end(): void {
    this.#over = true;
    for (const { reject } of [...this.#underWay.values(), ...this.#waiting]) reject(isOver());
    this.#underWay.clear();
    this.#waiting.length = 0;
  }

  result(seq: number, result: Result): void {
    this.#take(seq)?.resolve(result);
    this.#next();
  }

  refused(seq: number, { code, message, status, pointer, isMistake }: Refusal): void {
    const error =
      isMistake === true ? new FunctionFailed(message) : new ResourceRefused(code, message, status, pointer);
    this.#take(seq)?.reject(error);
    this.#next();
  }

  #call(call: ThreadCall): Promise<Result> {
    if (this.#over) return Promise.reject(isOver());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ call, resolve, reject });
      this.#next();
    });
  }

  #next(): void {
    while (this.#underWay.size < callsUnderWayMax) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      this.#seq += 1;
      this.#underWay.set(this.#seq, next);
      this.#post({ kind: 'call', run: this.#run, seq: this.#seq, call: next.call });
    }
  }

  #take(seq: number): Waiting | undefined {
    const found = this.#underWay.get(seq);
    this.#underWay.delete(seq);
    return found;
  }
}

function isOver(): ResourceRefused {
  return new ResourceRefused('request_timeout', 'the time for this message is over, or it was handled', 408);
}
