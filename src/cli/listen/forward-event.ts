/** Posts one event to a program on this machine, with the body and the fields of a delivery (§5.6). */
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

/** Either a status or an error, and the duration. */
export type Forwarded = {
  readonly status: number | null;
  readonly error: string | null;
  readonly tookMs: number;
};

/** The longest timeout of a receiver (§6.8). */
const answerMsMax = 30_000;

/**
 * Never rejects: an unreachable program is a result.
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

/** The body of §2.6 as received, or of §2.7 made from it. */
function bodyOf({ type, data }: StreamEvent, scheme: Scheme): string {
  const object = scheme === 'standard' ? objectOf(data) : undefined;
  if (object === undefined) return data;
  const { created } = JSON.parse(data) as { readonly created: number };
  const timestamp = new Date(created * 1000).toISOString();
  return `{"type":${JSON.stringify(type)},"timestamp":"${timestamp}","data":${object}}`;
}

function fieldsOf({ id, type }: StreamEvent, body: Uint8Array, scheme: Scheme, secret: string): Headers {
  const signed: Signed = {
    // The log has no deliveries. One id for each event lets the receiver recognise duplicates.
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
