/**
 * Reads text/event-stream from the program as a browser would (HTML, "server-sent events"): comments, and events with id,
 * type and data.
 */
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { adminKey } from '../../harness/exchange.ts';

export type StreamedEvent = { readonly id: string; readonly event: string; readonly data: string };

export type EventReader = {
  readonly response: IncomingMessage;
  /** Everything that came so far. */
  readonly events: readonly StreamedEvent[];
  readonly comments: readonly string[];
  /** Resolves when the predicate holds for what came; rejects when the stream ends before, or nothing comes in time. */
  until(holds: (reader: EventReader) => boolean): Promise<void>;
  /** Resolves when the stream has ended or was cut; true: properly ended. */
  readonly ended: Promise<boolean>;
  close(): void;
};

export type ReaderOptions = {
  readonly path?: string;
  readonly lastEventId?: string;
  readonly anonymous?: boolean;
  readonly bearer?: string;
};

const patienceMs = 15_000;

export async function readEvents(port: number, options: ReaderOptions = {}): Promise<EventReader> {
  const headers: Record<string, string> = { Accept: 'text/event-stream' };
  if (options.anonymous !== true) headers.Authorization = `Bearer ${options.bearer ?? adminKey}`;
  if (options.lastEventId !== undefined) headers['Last-Event-ID'] = options.lastEventId;
  const path = options.path ?? '/api/v1/events';
  const asked: ClientRequest = request({ host: '127.0.0.1', port, path, headers, agent: false });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return collect(asked, response);
}

function collect(asked: ClientRequest, response: IncomingMessage): EventReader {
  const events: StreamedEvent[] = [];
  const comments: string[] = [];
  let rest = '';
  let over = false;
  let wake: () => void = () => undefined;
  response.setEncoding('utf8');
  response.on('data', (text: string) => {
    const blocks = (rest + text).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) take(block);
    wake();
  });
  const ended = new Promise<boolean>((resolve) => {
    // A reset shows as an error, then as a close before the end.
    response.on('error', () => undefined);
    response.on('close', () => {
      over = true;
      wake();
      resolve(response.complete);
    });
  });

  function take(block: string): void {
    const fields = new Map<string, string>();
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':');
      if (colon === 0) comments.push(line.slice(1).trim());
      else fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart());
    }
    const data = fields.get('data');
    if (data === undefined) return;
    events.push({ id: fields.get('id') ?? '', event: fields.get('event') ?? '', data });
  }

  const reader: EventReader = {
    response,
    events,
    comments,
    ended,
    close: () => asked.destroy(),
    async until(holds) {
      const deadline = Date.now() + patienceMs;
      while (!holds(reader)) {
        if (over) throw new Error(`the stream ended after ${events.length} events`);
        const left = deadline - Date.now();
        if (left <= 0) throw new Error(`nothing fitting came in time, after ${events.length} events`);
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, left);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    },
  };
  return reader;
}
