/**
 * A request over HTTP/1.1 for another server (§4.10): its content and its answer are streams that go through as they are, and
 * none of it is a resource's. Whether it may be forwarded, and what the refusal says, is the proxy's to decide.
 */
import { Readable } from 'node:stream';
import type { ForwardCall } from '../connections/proxy.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import type { Context } from './context.ts';
import type { Exchange } from './exchange.ts';
import { deliver, fail } from './handle.ts';

/** Call it where `proxy.isForeign(exchange)`, after `exchange.begin()`. */
export function forwardRequest(exchange: Exchange, proxy: NonNullable<Context['proxy']>): void {
  const { incoming, outgoing, context, connection } = exchange;
  const gone = new AbortController();
  const onClose = () => {
    if (!outgoing.writableFinished) gone.abort();
  };
  outgoing.once('close', onClose);
  let status = 0;
  const call: ForwardCall = {
    request: exchange,
    signal: gone.signal,
    // node:http has closed a message without content already, which a stream that is read cannot tell from one that broke.
    content: exchange.announcesContent ? incoming : ownEmitter(Readable.from([]), ignoreError),
    answer: (given, fields) => {
      status = given;
      // An answer before the end of the content leaves octets before the next request.
      if (connection.closing || context.draining || !incoming.complete) connection.closing = true;
      if (exchange.version === '1.0') outgoing.removeHeader('Transfer-Encoding');
      outgoing.writeHead(given, connection.closing ? [...fields, 'Connection', 'close'] : [...fields]);
      return outgoing;
    },
    interim: (given, fields) => {
      if (exchange.version === '1.0' || outgoing.headersSent) return;
      if (given === 100) exchange.awaitsContinue = false;
      outgoing.writeInformation(given, [...fields]);
    },
  };
  proxy.forward(call).then(
    (refused) => {
      if (refused === undefined) exchange.settle({ status: status === 0 ? 499 : status });
      else deliver(exchange, refused);
    },
    (error: unknown) => fail(exchange, error),
  );
}
