/**
 * CONNECT and connect-udp on a stream (RFC 9113 §8.5, RFC 9298 §3.5): asks the room that leads elsewhere, answers, and
 * hands the stream over. A client that is gone meanwhile is told to nobody but that room.
 */
import type { ProxyCall, ProxyReply } from '../../connections/proxy.ts';
import { deliver, fail } from '../handle.ts';
import { connectError } from './multiplexed.ts';
import type { StreamExchange } from './stream-exchange.ts';

const nothing = new Uint8Array(0);
const tunnelStatus = 200;

export function openTunnel(exchange: StreamExchange, ask: (call: ProxyCall) => Promise<ProxyReply>): void {
  const { stream } = exchange;
  const gone = new AbortController();
  const onClosed = () => gone.abort();
  stream.on('close', onClosed);
  ask({ request: exchange, signal: gone.signal }).then(
    (reply) => {
      stream.off('close', onClosed);
      if ('refused' in reply) deliver(exchange, reply.refused);
      else join(exchange, reply);
    },
    (error: unknown) => {
      stream.off('close', onClosed);
      fail(exchange, error);
    },
  );
}

function join(exchange: StreamExchange, reply: Exclude<ProxyReply, { refused: unknown }>): void {
  const { stream, context } = exchange;
  if (stream.closed || stream.destroyed) {
    reply.abandon();
    exchange.settle({ status: tunnelStatus });
    return;
  }
  const date = context.formatDate(context.clock());
  exchange.respond(tunnelStatus, [...reply.fields, 'api-version', context.apiVersion, 'date', date], false);
  exchange.held = true;
  exchange.settle({ status: tunnelStatus });
  reply.join({ duplex: stream, head: nothing, reset: () => stream.close(connectError) });
}
