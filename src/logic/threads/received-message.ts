/**
 * The message as a handler receives it (config/senders.ts), and the event or the run as a subscriber or a job does. The
 * text of a message is decoded only when the handler reads it.
 */
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import type { EventHandling, SubscribedEvent } from '../../config/inspect-functions.ts';
import type { JobRun } from '../../config/jobs.ts';
import { type ReceivedMessage, UnprocessableMessage } from '../../config/senders.ts';
import type { GivenMessage } from './task.ts';

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
  const { contentEncoding, body: given, ...shown } = message;
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
    json: () => parse(decode(true)),
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

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new UnprocessableMessage('the body is not JSON');
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

/** The content of a subscriber's message; `before` only where the event has it. */
export type EventContent = {
  readonly event: SubscribedEvent;
  readonly before?: SubscribedEvent['data']['object'];
};

/** @param body in base64 */
export function eventHandling(body: string): Pick<EventHandling, 'event' | 'before' | 'after'> {
  const { event, before } = JSON.parse(Buffer.from(body, 'base64').toString()) as EventContent;
  const after = event.type.endsWith('.deleted') ? undefined : event.data.object;
  return { event, before, after };
}

/** The content of a job's message. */
export type JobContent = { readonly scheduledAt: string };

/** @param body in base64 */
export function jobRun(body: string): Pick<JobRun, 'scheduledAt'> {
  const { scheduledAt } = JSON.parse(Buffer.from(body, 'base64').toString()) as JobContent;
  return { scheduledAt: new Date(scheduledAt) };
}
