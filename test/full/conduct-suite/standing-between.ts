/**
 * A server between the suite and the clean one that breaks one rule: it changes the text of the requests and answers of a mutant, and
 * passes every other connection on as it is.
 */
import { connect, createServer, type Socket } from 'node:net';
import { type Ending, listen } from '../../harness/listening.ts';

export type Mutant = {
  /** The requests that it changes, by their text. */
  readonly when: RegExp;
  readonly request?: (text: string) => string;
  /** An empty text: the connection ends without an answer. */
  readonly answer?: (text: string, request: string) => string;
  /** The connection stays open after the answer. */
  readonly staysOpen?: true;
};

/** An answer whose server waits for more is whole after so long. */
const quietMs = 60;

export async function standBetween(port: number, mutant: Mutant, context: Ending): Promise<number> {
  const server = createServer((client) => {
    let text = '';
    const take = (chunk: Buffer): void => {
      text += chunk.toString('latin1');
      if (!isDecided(text)) return;
      client.off('data', take);
      if (mutant.when.test(text)) change(client, text, { port, mutant });
      else passOn(client, text, port);
    };
    client.on('data', take);
  });
  return (await listen(server, context)).port;
}

/** True when the text is a whole request, or no request of HTTP/1. */
function isDecided(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return text.length > 20 && !/^(?:\r\n)?[A-Za-z]+ /.test(text);
  if (/^Transfer-Encoding: chunked\r$/im.test(text.slice(0, end + 2)))
    return /(?:^|\n)(?:0|xyz)\r\n/.test(text.slice(end));
  const length = Number(/^Content-Length: (\d+)\r$/im.exec(text.slice(0, end + 2))?.[1] ?? 0);
  // What no client sends in one piece is left to the server.
  return length > 1_000_000 || text.length >= end + 4 + length;
}

function passOn(client: Socket, text: string, port: number): void {
  const upstream = connect(port, '127.0.0.1', () => {
    upstream.write(Buffer.from(text, 'latin1'));
    client.pipe(upstream).pipe(client);
  });
  upstream.on('error', () => client.destroy());
  client.on('error', () => upstream.destroy());
  client.on('close', () => upstream.destroy());
}

type Between = { readonly port: number; readonly mutant: Mutant };

function change(client: Socket, text: string, { port, mutant }: Between): void {
  const { request = (same) => same, answer = (same) => same, staysOpen } = mutant;
  const upstream = connect(port, '127.0.0.1', () => upstream.write(Buffer.from(request(text), 'latin1')));
  let answered = '';
  let timer: NodeJS.Timeout | undefined;
  let isDone = false;
  const finish = (): void => {
    if (isDone) return;
    isDone = true;
    clearTimeout(timer);
    upstream.destroy();
    const changed = answer(answered, text);
    if (changed !== '' && client.writable) client.write(Buffer.from(changed, 'latin1'));
    if (staysOpen === undefined) client.end();
  };
  upstream.on('data', (chunk: Buffer) => {
    answered += chunk.toString('latin1');
    clearTimeout(timer);
    timer = setTimeout(finish, quietMs);
  });
  upstream.on('error', finish);
  upstream.on('close', finish);
  client.on('error', () => upstream.destroy());
}
