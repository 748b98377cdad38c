/**
 * `comity listen`: forwards the events of a running server to a program on this machine, signed as deliveries are, so
 * that a receiver can be tried before it is public. It registers, stores and retries nothing: it shows each response,
 * and `--since` begins again after any event.
 */

import { createSecretKey, randomBytes } from 'node:crypto';
import type { Scheme } from '../../model/endpoint.ts';
import { eventPatternFault, matchesEventPattern } from '../../model/event-pattern.ts';
import { objectOf } from '../../webhooks/sending/sent-event.ts';
import {
  messageId,
  plainFields,
  type Signed,
  standardFields,
  timestampedFields,
} from '../../webhooks/sent-headers.ts';
import { standardKey, textKey } from '../../webhooks/signature/mac-keys.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { onInterrupt } from '../progress.ts';
import type { Call } from '../remote/remote-command.ts';
import { withKeys } from '../server-client.ts';
import { printable } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { followEvents, type StreamEvent } from './follow-events.ts';

type ListenArguments = {
  readonly forwardTo: string;
  /** Absent: all events. */
  readonly events?: readonly string[];
  readonly scheme: Scheme;
  readonly since?: string;
};

const secretBytes = 32;

/** Resolves on an interrupt. */
export async function listen({ terminal, server, options, json }: Call<ListenArguments>): Promise<number> {
  const target = targetOf(options.forwardTo);
  const wanted = matcherOf(options.events ?? ['*']);
  const client = server();
  const secret = secretOf(withKeys(terminal.environment).COMITY_LISTEN_SECRET, options.scheme);
  const interrupted = new AbortController();
  const stopListening = onInterrupt(() => interrupted.abort());
  let isAnnounced = false;
  const events = followEvents(client, {
    since: options.since,
    signal: interrupted.signal,
    onOpen: () => {
      terminal.err(
        `comity: ${isAnnounced ? 'connected again' : `forwarding events of ${client.api} to ${target}`}`,
      );
      if (!isAnnounced) terminal.err(`comity: signed as ${options.scheme} with the secret ${secret}`);
      isAnnounced = true;
    },
    onBreak: (reason, pauseMs) => {
      terminal.err(`comity: ${reason}; again in ${(pauseMs / 1000).toFixed(1)} seconds`);
    },
  });
  const counts = { forwarded: 0, accepted: 0 };
  try {
    for await (const event of events) {
      if (isAboutReading.has(event.type) || !wanted(event.type)) continue;
      const forwarded = await forwardEvent(event, { target, scheme: options.scheme, secret });
      counts.forwarded += 1;
      if (forwarded.status !== null && forwarded.status >= 200 && forwarded.status <= 299)
        counts.accepted += 1;
      tell(terminal, event, forwarded, json);
    }
  } finally {
    stopListening();
  }
  terminal.err(`comity: ${counts.forwarded} events forwarded, ${counts.accepted} of them accepted`);
  return exitCodes.done;
}

function targetOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && (url.protocol === 'http:' || url.protocol === 'https:')) return url;
  const message = `--forward-to must be like http://127.0.0.1:3000/webhooks, not ${JSON.stringify(text)}`;
  throw new CommandFailure(message, { exitCode: exitCodes.usage });
}

function secretOf(given: string | undefined, scheme: Scheme): string {
  if (given === undefined || given === '') return `whsec_${randomBytes(secretBytes).toString('base64')}`;
  try {
    if (scheme === 'standard') standardKey(given);
    return given;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(`COMITY_LISTEN_SECRET: ${reason}`, { exitCode: exitCodes.usage, cause: error });
  }
}

/** Messages of a stream about what its reader may read or missed, which no endpoint gets. */
const isAboutReading: ReadonlySet<string> = new Set(['left', 'entered', 'reset']);

function matcherOf(patterns: readonly string[]): (type: string) => boolean {
  const fault = patterns.map(eventPatternFault).find((text) => text !== undefined);
  if (fault !== undefined) {
    throw new CommandFailure(`--events: a pattern ${fault}`, { exitCode: exitCodes.usage });
  }
  return (type) => patterns.some((pattern) => matchesEventPattern(pattern, type));
}

/** Prints a line for each event: text, or a JSON object. */
function tell(
  terminal: Terminal,
  { id, type }: StreamEvent,
  { status, error, tookMs }: Forwarded,
  json: boolean,
): void {
  const at = new Date();
  if (json) {
    terminal.out(
      JSON.stringify({ id, type, status, error, tookMs: Math.round(tookMs), at: at.toISOString() }),
    );
    return;
  }
  const outcome = status === null ? (error ?? 'failed') : String(status);
  const time = at.toTimeString().slice(0, 8);
  terminal.out(`${time}  ${printable(type)}  ${printable(id)}  ${outcome} in ${Math.round(tookMs)} ms`);
}

// Posts one event to a program on this machine, with the body and the fields of a delivery (§5.6).

type ForwardOptions = { readonly target: URL; readonly scheme: Scheme; readonly secret: string };

/** Either a status or an error, and the duration. */
type Forwarded = {
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
