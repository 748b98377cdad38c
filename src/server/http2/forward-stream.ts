/**
 * A request for another server that came on a stream (§4.10): its content and its answer go through as they are, without
 * the fields that a connection of HTTP/1.1 has and one of HTTP/2 must not have (RFC 9113 §8.2.2).
 */
import { Readable, Writable } from 'node:stream';
import { ignoreError, ownEmitter } from '../../observe/own-emitter.ts';
import { deliver, fail } from '../handle.ts';
import type { StreamExchange } from './stream-exchange.ts';

const ofConnections: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

/** For the log alone: nobody is left to be answered. */
const clientGone = 499;

export function forwardStream(exchange: StreamExchange): void {
  const { stream, context } = exchange;
  const { proxy } = context;
  if (proxy === undefined) throw new Error('nothing leads to other servers');
  const gone = new AbortController();
  const onClosed = () => gone.abort();
  stream.on('close', onClosed);
  const answered = proxy.forward({
    request: exchange,
    signal: gone.signal,
    // A stream whose client had nothing to send has ended before anybody read it.
    content: exchange.announcesContent ? stream : ownEmitter(Readable.from([]), ignoreError),
    answer: (status, fields) => answer(exchange, status, fields),
    interim: (status, fields) => interim(exchange, status, fields),
  });
  answered.then(
    (refusal) => {
      stream.off('close', onClosed);
      if (refusal !== undefined) deliver(exchange, refusal);
      // The client was gone before there was an answer.
      else exchange.settle({ status: exchange.sentStatus ?? clientGone });
    },
    (error: unknown) => {
      stream.off('close', onClosed);
      fail(exchange, error);
    },
  );
}

function answer(exchange: StreamExchange, status: number, fields: readonly string[]): Writable {
  const { stream } = exchange;
  exchange.held = true;
  if (stream.closed || stream.destroyed) return nowhere();
  const empty = exchange.method === 'HEAD' || status === 204 || status === 205 || status === 304;
  exchange.respond(status, withoutConnection(fields), empty);
  exchange.settle({ status });
  return empty ? nowhere() : stream;
}

function interim({ stream }: StreamExchange, status: number, fields: readonly string[]): void {
  if (stream.closed || stream.destroyed || stream.headersSent) return;
  const all: Record<string, string | number> = { ':status': status };
  const kept = withoutConnection(fields);
  for (let index = 0; index + 1 < kept.length; index += 2) {
    const name = kept[index]?.toLowerCase() ?? '';
    const before = all[name];
    all[name] = before === undefined ? (kept[index + 1] ?? '') : `${before}, ${kept[index + 1]}`;
  }
  stream.additionalHeaders(all);
}

function withoutConnection(fields: readonly string[]): string[] {
  const kept: string[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = fields[index] ?? '';
    if (!ofConnections.has(name.toLowerCase())) kept.push(name, fields[index + 1] ?? '');
  }
  return kept;
}

/** Where content of an answer goes that has none (RFC 9110 §6.4.1). */
function nowhere(): Writable {
  return ownEmitter(new Writable({ write: (_chunk, _encoding, done) => done() }), ignoreError);
}
