/**
 * The events of a running server, one after the other and for as long as it takes: a stream that breaks is opened again after a pause,
 * behind the last event that came, so none is lost. The pause doubles up to `pauseMsMax` and has a random part, because all
 * listeners of a server lose it at the same moment.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { CommandFailure } from '../failure.ts';
import type { ServerClient } from '../server-client.ts';

export type FollowOptions = {
  /** Id of the event to begin behind; undefined: from now on. */
  readonly since: string | undefined;
  readonly signal: AbortSignal;
  /** The first pause; 500 ms unless given. */
  readonly pauseMsMin?: number;
  readonly onOpen: () => void;
  /** @param pauseMs after which it is tried again */
  readonly onBreak: (reason: string, pauseMs: number) => void;
};

const pauseMsDefault = 500;
const pauseMsMax = 30_000;

/**
 * Ends when the signal does.
 * @throws CommandFailure where the server cannot be reached at first, or refuses
 */
export async function* followEvents(
  server: ServerClient,
  options: FollowOptions,
): AsyncGenerator<StreamEvent> {
  const { signal, pauseMsMin = pauseMsDefault } = options;
  let lastId = options.since;
  // Where nothing has come before the stream breaks, this is what it goes on behind.
  const newestId = lastId ?? (await newestOf(server));
  let failures = 0;
  for (let opened = 0; !signal.aborted; ) {
    try {
      const content = await openStream(server, opened === 0 ? lastId : (lastId ?? newestId), signal);
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

/** What happened, without what to do about it: that is to wait. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split(';', 1)[0] ?? message;
}

/** Asking again would be answered in the same way. */
class Refused extends CommandFailure {}

const lastingStatusesMin = 400;
const lastingStatusesMax = 499;
/** Of those, what a later request may be spared. */
const passingStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

async function openStream(
  server: ServerClient,
  lastId: string | undefined,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const fields = {
    Accept: 'text/event-stream',
    ...(lastId === undefined ? {} : { 'Last-Event-ID': lastId }),
  };
  const answer = await server.open('/events', fields, signal);
  if (answer.ok && answer.body !== null) return answer.body;
  const { status } = answer;
  const { message } = await server.refusal(answer);
  const lasts = status >= lastingStatusesMin && status <= lastingStatusesMax && !passingStatuses.has(status);
  throw lasts ? new Refused(message) : new CommandFailure(message);
}

/**
 * Ids that the server makes are in the order of time, and the index of ids finds the last one whatever the length of the log. Ids that
 * clients chose say nothing of time and are left out: at worst something is forwarded twice.
 */
async function newestOf(server: ServerClient): Promise<string | undefined> {
  const asked = new URLSearchParams({ 'id[gte]': 'evt_', 'id[lt]': 'evt`', sort: '-id', fields: 'id' });
  return (await server.list<{ readonly id: string }>(`/events?${asked}`, 1)).items[0]?.id;
}

export type StreamEvent = { readonly id: string; readonly type: string; readonly data: string };

/** More than the server takes as one resource. */
const eventCharactersMax = 64 * 1024 * 1024;
const lineEnd = /\r\n|\r|\n/;

/**
 * A stream of server-sent events as values (HTML §9.2.6). Of its fields `id`, `event` and `data` are read; `retry` is not, because the
 * command has a pause of its own. An event is bounded: a server that never ends a line cannot fill the memory.
 *
 * Ends with the stream. @throws RangeError on an event beyond the bound; whatever the stream fails with
 */
export async function* readEventStream(content: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  // Takes a byte order mark away, as the algorithm asks.
  const decoder = new TextDecoder();
  const event = { id: '', type: '', data: [] as string[] };
  let rest = '';
  let held = 0;
  for await (const chunk of content) {
    const text = decoder.decode(chunk, { stream: true });
    held += text.length;
    if (held > eventCharactersMax) throw new RangeError('an event of the stream is too long');
    // Only what is new may hold an end of line: a long event in many chunks is not looked through again and again.
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

/** The last one has no end yet. A final CR may be half of a CRLF and waits with it. */
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
