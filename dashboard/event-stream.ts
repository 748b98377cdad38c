/** The event stream (§6.2) read with `fetch`, because EventSource sends no key. It resumes after the last event when the connection ends. */
import { base } from './description.ts';
import { fromScript, key, prefix } from './send.ts';

export type LiveEvent = {
  readonly id: string;
  readonly type: string;
  /** Undefined: not JSON. */
  readonly data: unknown;
};

export type StreamState = 'connecting' | 'open' | 'waiting';

const retryMs = 2000;

/**
 * Calls back for each event until `signal` is aborted.
 * @param onState the connection opens, or is lost and tried again
 */
export async function followEvents(
  onEvent: (event: LiveEvent) => void,
  onState: (state: StreamState) => void,
  signal: AbortSignal,
): Promise<void> {
  let last = '';
  while (!signal.aborted) {
    onState('connecting');
    try {
      const headers = new Headers({ Accept: 'text/event-stream', ...fromScript });
      if (last !== '') headers.set('Last-Event-ID', last);
      if (key.value !== null) headers.set('X-API-Key', key.value);
      const credentials = key.value === null ? 'same-origin' : 'omit';
      const response = await fetch(`${prefix}${base.value}/events`, { headers, credentials, signal });
      if (response.ok && response.body !== null) {
        onState('open');
        for await (const event of eventsOf(response.body)) {
          if (event.id !== '') last = event.id;
          onEvent(event);
        }
      }
    } catch {
      // The connection was lost, or the view was left: the loop tells which.
    }
    if (signal.aborted) return;
    onState('waiting');
    await new Promise((resolve) => setTimeout(resolve, retryMs));
  }
}

/** Server-sent events of a body (WHATWG HTML §9.2.6), those with data alone. */
async function* eventsOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<LiveEvent> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const event = parseBlock(block);
      if (event !== undefined) yield event;
    }
  }
}

function parseBlock(block: string): LiveEvent | undefined {
  const fields: Record<string, string> = {};
  for (const line of block.split(/\r?\n/)) {
    const [, name = '', value = ''] = /^([^:]+): ?(.*)$/.exec(line) ?? [];
    if (name !== '')
      fields[name] = name === 'data' && fields.data !== undefined ? `${fields.data}\n${value}` : value;
  }
  if (fields.data === undefined) return undefined;
  let data: unknown;
  try {
    data = JSON.parse(fields.data);
  } catch {
    data = undefined; // Shown without its content.
  }
  return { id: fields.id ?? '', type: fields.event ?? 'message', data };
}
