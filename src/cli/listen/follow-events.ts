/**
 * Follows the events of a running server without end: it reopens a broken stream after a pause, after the last event
 * that arrived, so none is lost. The pause doubles up to `pauseMsMax` and has a random part, because all listeners of a
 * server lose it at the same moment.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { CommandFailure } from '../failure.ts';
import type { ServerClient } from '../server-client.ts';

export type FollowOptions = {
  /** Id of the event to begin after; undefined: begin now. */
  readonly since: string | undefined;
  readonly signal: AbortSignal;
  /** The first pause; 500 ms unless given. */
  readonly pauseMsMin?: number;
  readonly onOpen: () => void;
  /** @param pauseMs time until the next try */
  readonly onBreak: (reason: string, pauseMs: number) => void;
};

const pauseMsDefault = 500;
const pauseMsMax = 30_000;

/**
 * Ends when the signal aborts.
 * @throws CommandFailure if the server cannot be reached at first, or refuses
 */
export async function* followEvents(
  server: ServerClient,
  options: FollowOptions,
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
      options.onBreak(reasonOf(error), pauseMs);
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** The reason without the advice after the semicolon: the command waits by itself. */
function reasonOf(error: unknown): string {
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

export type StreamEvent = { readonly id: string; readonly type: string; readonly data: string };

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
