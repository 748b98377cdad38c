/**
 * The end of a connection on which the client is still sending content that nobody will read (RFC 9112 §9.6). Closing
 * at once would make the kernel answer those octets with a reset, and a reset destroys the answer in the client's own
 * buffer. So: send the answer, send our FIN, read and drop what comes, up to a bound in octets and in time, then close.
 */
import type { Http1Request } from './http1-request.ts';

/** @param content undefined: the answer has none (HEAD, 204, 304) */
export function linger(
  exchange: Http1Request,
  content: string | Uint8Array | undefined,
  encoding: 'latin1' | 'utf8',
): void {
  const { incoming, outgoing, connection, context } = exchange;
  const { socket } = connection;
  const { unreadContentBytesMax, unreadContentTimeoutMs } = context.limits;
  let sent = false;
  let drained = false;
  let bytes = 0;
  const part = () => {
    if (sent && drained) socket.destroy();
  };
  const onSent = () => {
    sent = true;
    socket.end();
    const timer = setTimeout(() => socket.destroy(), unreadContentTimeoutMs).unref();
    socket.once('close', () => clearTimeout(timer));
    // Our FIN must have left before the socket may go.
    socket.once('finish', part);
    if (socket.writableFinished) part();
  };
  const onDrained = () => {
    drained = true;
    if (socket.writableFinished) part();
  };
  if (content === undefined) {
    outgoing.flushHeaders();
    onSent();
  } else outgoing.write(content, encoding, onSent);
  incoming.on('data', (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (bytes > unreadContentBytesMax) onDrained();
  });
  incoming.once('end', onDrained);
  incoming.resume();
}
