/**
 * A stream of server-sent events as values (HTML §9.2.6). Of its fields `id`, `event` and `data` are read; `retry` is not, because the
 * command has a pause of its own. An event is bounded: a server that never ends a line cannot fill the memory.
 */

export type StreamEvent = { readonly id: string; readonly type: string; readonly data: string };

/** More than the server takes as one resource. */
const eventCharactersMax = 64 * 1024 * 1024;
const lineEnd = /\r\n|\r|\n/;

/** Ends with the stream. @throws RangeError on an event beyond the bound; whatever the stream fails with */
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
