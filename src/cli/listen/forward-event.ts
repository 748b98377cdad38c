/** Posts one event to a program on this machine: body and fields are those that the sender of webhooks gives its deliveries (§5.6). */
import { createSecretKey } from 'node:crypto';
import type { Scheme } from '../../model/endpoint.ts';
import { objectOf } from '../../webhooks/sending/sent-event.ts';
import {
  messageId,
  plainFields,
  type Signed,
  standardFields,
  timestampedFields,
} from '../../webhooks/sent-headers.ts';
import { standardKey, textKey } from '../../webhooks/signature/mac-keys.ts';
import type { StreamEvent } from './follow-events.ts';

export type ForwardOptions = { readonly target: URL; readonly scheme: Scheme; readonly secret: string };

/** Either a status or an error, and how long it took. */
export type Forwarded = {
  readonly status: number | null;
  readonly error: string | null;
  readonly tookMs: number;
};

/** As long as the longest time that a receiver may be given (§6.8). */
const answerMsMax = 30_000;

/**
 * Never rejects: a program that is not running is what this command is used to find out.
 * @param options with a secret that fits the scheme
 */
export async function forwardEvent(
  event: StreamEvent,
  { target, scheme, secret }: ForwardOptions,
): Promise<Forwarded> {
  const startedAt = performance.now();
  try {
    const body = Buffer.from(bodyOf(event, scheme));
    const answer = await fetch(target, {
      method: 'POST',
      headers: fieldsOf(event, body, scheme, secret),
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(answerMsMax),
    });
    const { status } = answer;
    await answer.body?.cancel();
    return { status, error: null, tookMs: performance.now() - startedAt };
  } catch (error) {
    return { status: null, error: reasonOf(error), tookMs: performance.now() - startedAt };
  }
}

/** §2.6 as it came, or §2.7 made from it. */
function bodyOf({ type, data }: StreamEvent, scheme: Scheme): string {
  const object = scheme === 'standard' ? objectOf(data) : undefined;
  if (object === undefined) return data;
  const { created } = JSON.parse(data) as { readonly created: number };
  const timestamp = new Date(created * 1000).toISOString();
  return `{"type":${JSON.stringify(type)},"timestamp":"${timestamp}","data":${object}}`;
}

function fieldsOf({ id, type }: StreamEvent, body: Uint8Array, scheme: Scheme, secret: string): Headers {
  const signed: Signed = {
    // There is no delivery in the log. One id for one event is what a receiver needs to know a duplicate.
    delivery: { id: `dlv_${id}`, eventType: type },
    body,
    keys: [createSecretKey(scheme === 'standard' ? standardKey(secret) : textKey(secret))],
    timestamp: Math.floor(Date.now() / 1000),
  };
  const fields =
    scheme === 'standard'
      ? standardFields(signed, messageId(id), [])
      : scheme === 'plain'
        ? plainFields(signed)
        : timestampedFields(signed);
  const headers = new Headers({ 'Content-Type': 'application/json' });
  for (let at = 0; at < fields.length; at += 2) headers.set(fields[at] ?? '', fields[at + 1] ?? '');
  return headers;
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'timeout';
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof Error && 'code' in cause) return String(cause.code);
  return error instanceof Error ? error.message : String(error);
}
