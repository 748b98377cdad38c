/**
 * `comity listen`: forwards the events of a running server to a program on this machine, signed as deliveries are, so
 * that a receiver can be tried before it is public. It registers, stores and retries nothing: it shows each response,
 * and `--since` begins again after any event.
 */
import { createSecretKey, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Scheme } from '../../model/endpoint.ts';
import { eventPatternFault, matchesEventPattern } from '../../model/event.ts';
import { objectOf } from '../../webhooks/sending/sent-event.ts';
import { type Signed, signedFields } from '../../webhooks/sent-headers.ts';
import { standardKey, textKey } from '../../webhooks/signature/mac-keys.ts';
import { CommandFailure, exitCodes, usageFailure } from '../failure.ts';
import { type ServerClient, withKeys } from '../server-client.ts';
import { printable } from '../table.ts';
import { onInterrupt, type Terminal } from '../terminal.ts';
import type { Call } from './run-remote.ts';

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
  throw usageFailure(`--forward-to must be like http://127.0.0.1:3000/webhooks, not ${JSON.stringify(text)}`);
}

function secretOf(given: string | undefined, scheme: Scheme): string {
  if (given === undefined || given === '') return `whsec_${randomBytes(secretBytes).toString('base64')}`;
  try {
    if (scheme === 'standard') standardKey(given);
    return given;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw usageFailure(`COMITY_LISTEN_SECRET: ${reason}`, error);
  }
}

/** Messages of a stream about what its reader may read or missed, which no endpoint gets. */
const isAboutReading: ReadonlySet<string> = new Set(['left', 'entered', 'reset']);

function matcherOf(patterns: readonly string[]): (type: string) => boolean {
  const fault = patterns.map(eventPatternFault).find((text) => text !== undefined);
  if (fault !== undefined) {
    throw usageFailure(`--events: a pattern ${fault}`);
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
  { target, scheme, secret }: { readonly target: URL; readonly scheme: Scheme; readonly secret: string },
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
  const fields = signedFields[scheme](signed, id);
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

// Follows the events of a running server without end: it reopens a broken stream after a pause, after the last event
// that arrived, so none is lost. The pause doubles up to `pauseMsMax` and has a random part, because all listeners of a
// server lose it at the same moment.

const pauseMsDefault = 500;
const pauseMsMax = 30_000;

/**
 * Ends when the signal aborts.
 * @throws CommandFailure if the server cannot be reached at first, or refuses
 */
export async function* followEvents(
  server: ServerClient,
  options: {
    /** Id of the event to begin after; undefined: begin now. */
    readonly since: string | undefined;
    readonly signal: AbortSignal;
    /** The first pause. */
    readonly pauseMsMin?: number;
    readonly onOpen: () => void;
    /** @param pauseMs time until the next try */
    readonly onBreak: (reason: string, pauseMs: number) => void;
  },
): AsyncGenerator<StreamEvent> {
  const { signal, pauseMsMin = pauseMsDefault } = options;
  let lastId = options.since;
  // If the stream breaks before its first event, it resumes from here.
  const begunAt = lastId ?? (await placeNow(server));
  let failures = 0;
  for (let opened = 0; !signal.aborted; ) {
    try {
      const content = await openStream(server, opened === 0 ? lastId : (lastId ?? begunAt), signal);
      opened += 1;
      options.onOpen();
      for await (const event of readEventStream(content)) {
        failures = 0;
        if (event.id !== '') lastId = event.id;
        yield event;
        if (signal.aborted) return;
      }
      if (!signal.aborted) throw new CommandFailure('the server ended the stream');
    } catch (error) {
      if (signal.aborted) return;
      if (opened === 0 || error instanceof Refused) throw error;
      const ceiling = Math.min(pauseMsMax, pauseMsMin * 2 ** failures);
      const pauseMs = ceiling / 2 + (ceiling / 2) * Math.random();
      failures += 1;
      options.onBreak(breakReason(error), pauseMs);
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** The reason without the advice after the semicolon: the command waits by itself. */
function breakReason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split(';', 1)[0] ?? message;
}

/** A retry would get the same response. */
class Refused extends CommandFailure {}

const lastingStatusesMin = 400;
const lastingStatusesMax = 499;
/** The statuses in that range after which a retry may succeed. */
const passingStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

async function openStream(
  server: ServerClient,
  lastId: string | undefined,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const headers = {
    Accept: 'text/event-stream',
    ...(lastId === undefined ? {} : { 'Last-Event-ID': lastId }),
  };
  const answer = await server.open('/events', { headers, signal });
  if (answer.ok && answer.body !== null) return answer.body;
  const { status } = answer;
  const { message } = await server.refusal(answer);
  const lasts = status >= lastingStatusesMin && status <= lastingStatusesMax && !passingStatuses.has(status);
  throw lasts ? new Refused(message) : new CommandFailure(message);
}

/** Returns the place in the log from which the next event follows. */
async function placeNow(server: ServerClient): Promise<string> {
  const { nextCursor } = (await server.ask('GET', '/events?after=now&limit=1')) as {
    readonly nextCursor: string;
  };
  return nextCursor;
}

type StreamEvent = { readonly id: string; readonly type: string; readonly data: string };

/** More than the server accepts as one resource. */
const eventCharactersMax = 64 * 1024 * 1024;
const lineEnd = /\r\n|\r|\n/;

/**
 * Parses a stream of server-sent events (HTML §9.2.6): the fields `id`, `event` and `data`; not `retry`, because the
 * command has its own pause. An event is bounded: a server that never ends a line cannot exhaust the memory.
 * @throws RangeError for an event beyond the bound, and any error of the stream
 */
export async function* readEventStream(content: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  // Removes a byte order mark, as the algorithm requires.
  const decoder = new TextDecoder();
  const event = { id: '', type: '', data: [] as string[] };
  let rest = '';
  let held = 0;
  for await (const chunk of content) {
    const text = decoder.decode(chunk, { stream: true });
    held += text.length;
    if (held > eventCharactersMax) throw new RangeError('an event of the stream is too long');
    // Searches only the new text for line ends, so that a long event in many chunks costs linear time.
    if (!lineEnd.test(text)) {
      rest += text;
      continue;
    }
    const lines = linesOf(rest + text);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line !== '') takeLine(line, event);
      else if (event.data.length > 0) {
        yield { id: event.id, type: event.type, data: event.data.join('\n') };
        event.data = [];
        event.type = '';
      }
    }
    if (event.data.length === 0) held = rest.length;
  }
}

/** The last element is an incomplete line. A final CR may be half of a CRLF and stays with it. */
function linesOf(text: string): string[] {
  if (!text.endsWith('\r')) return text.split(lineEnd);
  const lines = text.slice(0, -1).split(lineEnd);
  lines.push(`${lines.pop() ?? ''}\r`);
  return lines;
}

function takeLine(line: string, event: { id: string; type: string; data: string[] }): void {
  const colon = line.indexOf(':');
  const name = colon === -1 ? line : line.slice(0, colon);
  const written = colon === -1 ? '' : line.slice(colon + 1);
  const value = written.startsWith(' ') ? written.slice(1) : written;
  if (name === 'data') event.data.push(value);
  else if (name === 'event') event.type = value;
  else if (name === 'id' && !value.includes('\0')) event.id = value;
}
