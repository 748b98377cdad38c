/**
 * A request whose connection node:http has given away, because it was to become something else (Upgrade, CONNECT), and the answer it is owed.
 * Modes:
 *
 *   waiting    answers to earlier requests on the connection are still owed (RFC 9112 §9.3.2); `whenOwedAreSent` tells when they
 *              have gone out. node:http hands the socket over before that.
 *   answering  the socket is assigned to an answer of its own.
 *   answered   by an ordinary answer, which is the last one: then our FIN, and what still comes is dropped for a while.
 *   taken      the socket belongs to what it became.
 */
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Response } from '../http/message.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { type Connection, connectionOf } from './connection.ts';
import type { Context } from './context.ts';
import { Exchange } from './exchange.ts';

export class DetachedExchange extends Exchange {
  /** Becomes what the response asks for, and tells whether it did. */
  readonly #become: (exchange: DetachedExchange, response: Response) => boolean;

  constructor(
    context: Context,
    incoming: IncomingMessage,
    become: (exchange: DetachedExchange, response: Response) => boolean = () => false,
  ) {
    const connection = connectionOf(incoming.socket, context.monotonic);
    super(context, connection, incoming, answerOn(context, incoming));
    this.#become = become;
    connection.last = this;
    this.begin();
  }

  override send(response: Response): void {
    if (!this.#become(this, response)) super.send({ ...response, close: true });
  }

  /** The socket without the answer that it was assigned to. */
  take(): Socket {
    const { outgoing, connection } = this;
    const { socket } = connection;
    outgoing.detachSocket(socket);
    occupy(connection);
    return socket;
  }
}

/** Calls back in this turn where nothing is owed; never where the connection ends with what is. */
export function whenOwedAreSent(connection: Connection, act: () => void): void {
  const { last } = connection;
  const go = () => {
    if (!connection.closing && connection.socket.writable) act();
  };
  if (connection.closing) return;
  if (last === undefined || last.outgoing.writableFinished) go();
  else last.outgoing.once('finish', go);
}

/** An answer on the socket, of which node:http knows nothing: its end ends the connection. */
export function answerOn(context: Context, incoming: IncomingMessage): ServerResponse {
  const { socket } = incoming;
  const outgoing = ownEmitter(new ServerResponse(incoming), ignoreError);
  outgoing.assignSocket(socket);
  // The listeners of node:http are off: without these nobody would act on a stall (sweep.ts).
  socket.setTimeout(0);
  socket.on('timeout', destroy);
  outgoing.once('finish', () => {
    socket.end();
    socket.resume();
    const timer = setTimeout(() => socket.destroy(), context.limits.unreadContentTimeoutMs).unref();
    socket.once('close', () => clearTimeout(timer));
  });
  return outgoing;
}

/** From here on the connection is nobody's to time, and none of its silence is a stall. */
function occupy(connection: Connection): void {
  const { socket } = connection;
  connection.closing = true;
  // Under way until it has closed: a drain waits for it, and cuts it at its bound.
  connection.streaming = true;
  connection.underWay += 1;
  // The request is of no use any more, and would be held for as long as the socket lives.
  connection.last = undefined;
  socket.setTimeout(0);
  socket.off('timeout', destroy);
}

function destroy(this: Socket): void {
  this.destroy();
}
