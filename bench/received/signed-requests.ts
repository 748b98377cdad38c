/**
 * Signed messages for the load generator. Each connection has one buffer, into which key, time and signature of the next message are written
 * once the answer to the last one has come: signing takes some 4 us of the generator's processor, and nothing is prepared.
 */
import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import type { ReceivedLoad } from '../load/plan.ts';
import {
  dedupeKey,
  hmacKey,
  keyDigits,
  keyMark,
  messageTemplate,
  messageType,
  type SigningScheme,
} from './messages.ts';

/** Random octets that keys are cut from. */
const poolBytes = 12_288;
const timeMark = '1790000000';

type Prepared = {
  readonly bytes: Buffer;
  readonly body: Buffer;
  /** Where the key stands. */
  readonly keysAt: readonly number[];
  /** Where the time stands; -1: nowhere. */
  readonly timeAt: number;
  readonly signatureAt: number;
  /** Messages that were made in it. */
  made: number;
  sent: number;
};

/** @returns the octets of the next request of the connection with this number */
export function signedRequests(
  load: ReceivedLoad,
  headOf: (fieldLines: string) => string,
  connections: number,
): (connection: number) => Buffer {
  const { scheme, sendings } = load;
  const key = createSecretKey(hmacKey(scheme));
  const prepared = Array.from({ length: connections }, () => prepare(scheme, headOf));
  const nextKey = createKeySource();
  return (connection) => {
    const one = prepared[connection];
    if (one === undefined) throw new RangeError(`no connection ${connection}`);
    one.sent += 1;
    if (one.sent <= one.made * sendings) return one.bytes;
    one.made += 1;
    write(one, scheme, key, nextKey(), String(Math.floor(Date.now() / 1000)));
    return one.bytes;
  };
}

function prepare(scheme: SigningScheme, headOf: (fieldLines: string) => string): Prepared {
  const body = messageTemplate();
  const fields = fieldLines(scheme);
  const length = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
  const head = headOf(`${length}${fields}`);
  const bytes = Buffer.from(`${head}\r\n${body}`, 'latin1');
  const keysAt: number[] = [];
  for (let at = bytes.indexOf(keyMark); at >= 0; at = bytes.indexOf(keyMark, at + 1)) keysAt.push(at);
  return {
    bytes,
    body: bytes.subarray(bytes.length - body.length),
    keysAt,
    timeAt: bytes.indexOf(timeMark),
    signatureAt: bytes.indexOf(signatureMark(scheme)),
    made: 0,
    sent: 0,
  };
}

function fieldLines(scheme: SigningScheme): string {
  const id = dedupeKey(scheme, keyMark);
  const mark = signatureMark(scheme);
  switch (scheme) {
    case 'standard':
      return `webhook-id: ${id}\r\nwebhook-timestamp: ${timeMark}\r\nwebhook-signature: v1,${mark}\r\n`;
    case 'timestamped':
      return `Service-Signature: t=${timeMark},v1=${mark}\r\n`;
    case 'plain':
      return `X-Service-Delivery: ${id}\r\nX-Service-Event: ${messageType}\r\nX-Hub-Signature-256: sha256=${mark}\r\n`;
  }
}

function signatureMark(scheme: SigningScheme): string {
  return scheme === 'standard' ? 'S'.repeat(44) : 'S'.repeat(64);
}

function write(one: Prepared, scheme: SigningScheme, secret: KeyObject, key: string, time: string): void {
  const { bytes, body, keysAt, timeAt, signatureAt } = one;
  for (const at of keysAt) bytes.write(key, at, 'latin1');
  if (timeAt >= 0) bytes.write(time, timeAt, 'latin1');
  const hmac = createHmac('sha256', secret);
  if (scheme === 'standard') hmac.update(`${dedupeKey(scheme, key)}.${time}.`);
  if (scheme === 'timestamped') hmac.update(`${time}.`);
  bytes.write(hmac.update(body).digest(scheme === 'standard' ? 'base64' : 'hex'), signatureAt, 'latin1');
}

/** Keys that nobody has sent before. */
function createKeySource(): () => string {
  let pool = '';
  let at = 0;
  return () => {
    if (at >= pool.length) {
      pool = randomBytes(poolBytes).toString('hex');
      at = 0;
    }
    at += keyDigits;
    return pool.slice(at - keyDigits, at);
  };
}
