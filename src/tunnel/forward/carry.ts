/**
 * Sends one request over an open connection to the destination and passes on its answer. Modes:
 *
 * - asking: the request and its content go out. A failure is a refusal: 502, 504.
 * - answering: the header section of the answer was passed on. A failure now aborts the answer.
 * - over: reported as closed, all listeners removed, the connection closed. Entered once, by `#end`.
 *
 * node:http writes the request and reads the answer (its strict parser refuses Content-Length beside Transfer-Encoding,
 * two lengths, folded fields and bare line feeds), so only understood messages pass. Nothing is buffered beyond the
 * high-water marks of the streams. Octets are counted on the socket, header sections included.
 */
import { type ClientRequest, type IncomingMessage, request as openRequest } from 'node:http';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import type { Response } from '../../http/message.ts';
import type { TunnelEnd } from '../../observe/observation.ts';
import { ignoreError, onEnd, ownEmitter } from '../../observe/own-emitter.ts';
import type { Admitted } from '../admission.ts';
import type { Destination } from '../destination.ts';
import type { OpenTunnel, Reached } from '../open-tunnels.ts';
import type { ForwardCall } from '../proxy-call.ts';
import type { Refusal } from '../refusal.ts';
import { answerFields, type Framing, framingOf, requestFields } from './forwarded-fields.ts';

export type CarryLimits = {
  /** Time for the header section of the answer, from the last octet that moved. */
  readonly tunnelAnswerMs: number;
  readonly tunnelIdleMs: number;
};

export type Carriage = {
  readonly call: ForwardCall;
  readonly admitted: Admitted;
  readonly socket: Socket;
  readonly reached: Reached;
  readonly destination: Destination;
  readonly path: string;
  readonly via: string;
  readonly limits: CarryLimits;
  readonly monotonic: () => number;
};

const answerFieldsBytesMax = 65_536;

/** Resolves at the end: with a refusal to send, or undefined. */
export async function carry(carriage: Carriage): Promise<Response | undefined> {
  const framing = await framingOf(carriage.call);
  return new Promise((resolve) => new Passage(carriage, resolve).begin(framing));
}

class Passage {
  readonly #carriage: Carriage;
  readonly #resolve: (refusal: Response | undefined) => void;
  #mode: 'asking' | 'answering' | 'over' = 'asking';
  #outgoing: ClientRequest | undefined;
  #sink: Writable | undefined;
  #tunnel: OpenTunnel | undefined;
  #takesContent = false;
  #timer: NodeJS.Timeout | undefined;
  #movedMs = 0;
  #spentBytes = 0;

  constructor(carriage: Carriage, resolve: (refusal: Response | undefined) => void) {
    this.#carriage = carriage;
    this.#resolve = resolve;
  }

  begin(framing: Framing): void {
    const { call, admitted, socket, reached, destination, path, via } = this.#carriage;
    // The request or its answer reports any failure of the connection; later errors are ignored.
    ownEmitter(socket, ignoreError);
    this.#tunnel = admitted.open(reached, (why) => this.#cut(why));
    if (call.signal.aborted) {
      this.#end('client-reset');
      return;
    }
    call.signal.addEventListener('abort', this.#onClientGone);
    this.#movedMs = this.#carriage.monotonic();
    this.#watch();
    try {
      this.#outgoing = ownEmitter(
        openRequest({
          createConnection: () => socket,
          method: call.request.method,
          path,
          headers: requestFields(call.request, destination, framing, via),
          setHost: false,
          insecureHTTPParser: false,
          maxHeaderSize: answerFieldsBytesMax,
        }),
        this.#onAskedError,
      );
    } catch (error) {
      // A field or a method that our parser accepts and node:http does not send.
      this.#refuse({ code: 'field_invalid', error: 'http_request_error', why: String(error) }, 'ended');
      return;
    }
    this.#listen(this.#outgoing);
    this.#send(this.#outgoing, framing);
  }

  #listen(outgoing: ClientRequest): void {
    // The length of the section limits them; node:http silently drops fields beyond its own number.
    outgoing.maxHeadersCount = 0;
    outgoing.on('information', ({ statusCode, rawHeaders }) => {
      this.#moved();
      if (this.#mode !== 'asking' || this.#carriage.call.request.version === '1.0') return;
      const fields = answerFields(rawHeaders, statusCode, '', this.#carriage.via);
      this.#carriage.call.interim(statusCode, fields);
    });
    outgoing.on('response', (answer) => this.#answer(answer));
    outgoing.on('close', () => {
      if (this.#mode === 'asking') this.#breakOff(undefined);
    });
  }

  #send(outgoing: ClientRequest, framing: Framing): void {
    if (framing.kind === 'none') {
      outgoing.end();
      return;
    }
    const { content } = this.#carriage.call;
    this.#takesContent = true;
    outgoing.flushHeaders();
    content.on('data', this.#onContent);
    onEnd(content, this.#onContentEnd);
    content.on('close', this.#onContentClose);
    content.on('error', this.#onContentClose);
    outgoing.on('drain', () => {
      if (this.#mode !== 'over') content.resume();
    });
    content.resume();
  }

  /** Once the answer has begun, it reports its own end: the connection may close while some of it waits to be read. */
  readonly #onAskedError = (error: Error): void => {
    if (this.#mode === 'asking') this.#breakOff(error);
  };

  readonly #onContent = (chunk: Uint8Array): void => {
    if (this.#outgoing?.write(chunk) === false) this.#carriage.call.content.pause();
    this.#moved();
  };

  readonly #onContentEnd = (): void => {
    this.#outgoing?.end();
  };

  readonly #onContentClose = (): void => {
    // If the end of the connection ends the answer, half of it would look complete; so the connection is reset.
    if (!this.#carriage.call.content.readableEnded) this.#onClientGone();
  };

  readonly #onClientGone = (): void => {
    this.#end('client-reset');
  };

  #answer(answer: IncomingMessage): void {
    const { call, via } = this.#carriage;
    const { statusCode = 0, rawHeaders, httpVersion } = answer;
    this.#moved();
    if (this.#mode !== 'asking') return;
    const fault = faultOf(statusCode);
    if (fault !== undefined) {
      this.#refuse({ ...broken, error: 'http_protocol_error', details: fault }, 'destination-reset');
      return;
    }
    this.#mode = 'answering';
    const sink = call.answer(statusCode, answerFields(rawHeaders, statusCode, httpVersion, via));
    this.#sink = sink;
    sink.on('error', this.#onClientGone);
    sink.on('close', () => this.#end(sink.writableFinished ? 'ended' : 'client-reset'));
    sink.on('finish', () => this.#end('ended'));
    sink.on('drain', () => answer.resume());
    answer.on('data', (chunk: Uint8Array) => {
      if (!sink.write(chunk)) answer.pause();
      this.#moved();
    });
    answer.on('end', () => {
      if (answer.complete) sink.end();
    });
    answer.on('error', (error) => this.#breakOff(error));
    answer.on('close', () => {
      if (!answer.complete) this.#breakOff(undefined);
    });
  }

  /** The destination closed the connection, or its answer is invalid. */
  #breakOff(error: Error | undefined): void {
    if (this.#mode === 'answering' && this.#sink?.writableEnded) return;
    const isProtocol = codeOf(error).startsWith('HPE_');
    const refusal: Refusal = {
      ...broken,
      error: isProtocol ? 'http_protocol_error' : 'http_response_incomplete',
      details: isProtocol
        ? 'what the destination answered is not HTTP'
        : 'the destination broke the connection',
      why: error === undefined ? 'the connection was closed' : error.message,
    };
    this.#refuse(refusal, 'destination-reset');
  }

  #cut(why: TunnelEnd): void {
    const code = why === 'bytes' ? 'tunnel_bytes_exhausted' : 'unavailable';
    this.#refuse({ code, error: 'http_request_denied', details: `cut: ${why}`, retryAfterSeconds: 5 }, why);
  }

  #moved(): void {
    const { socket, admitted, monotonic } = this.#carriage;
    this.#movedMs = monotonic();
    const bytes = socket.bytesRead + socket.bytesWritten;
    const spent = bytes - this.#spentBytes;
    this.#spentBytes = bytes;
    if (spent > 0 && this.#mode !== 'over' && !admitted.account.spend(spent)) this.#cut('bytes');
  }

  /** One timer for the whole exchange, set again when it fires too early: octets move far more often than it does. */
  #watch(): void {
    const { limits, monotonic } = this.#carriage;
    const boundMs = this.#mode === 'asking' ? limits.tunnelAnswerMs : limits.tunnelIdleMs;
    const leftMs = this.#movedMs + boundMs - monotonic();
    if (leftMs <= 0) {
      const refusal = { code: 'destination_timeout', error: 'http_response_timeout' } as const;
      this.#refuse(refusal, 'idle');
      return;
    }
    const shortestMs = Math.min(limits.tunnelAnswerMs, limits.tunnelIdleMs);
    this.#timer = setTimeout(() => this.#watch(), Math.min(Math.ceil(leftMs), shortestMs));
  }

  #refuse(refusal: Refusal, why: TunnelEnd): void {
    const { call, admitted } = this.#carriage;
    if (this.#mode === 'answering') this.#end(why);
    if (this.#mode === 'over') return;
    const answer = this.#close(why, () => admitted.refuse(refusal));
    // Unread content lies before the next request.
    this.#resolve(
      call.content.readableEnded || this.#outgoing?.writableEnded ? answer : { ...answer, close: true },
    );
  }

  #end(why: TunnelEnd): void {
    if (this.#mode === 'over') return;
    this.#close(why, () => undefined);
    const { content } = this.#carriage.call;
    if (this.#sink !== undefined && !this.#sink.writableFinished) this.#sink.destroy();
    // Answered before all of it was read: the rest is discarded, within the time that the server gives a request.
    else if (!content.readableEnded && !content.destroyed && this.#outgoing?.writableEnded === false)
      content.resume();
    this.#resolve(undefined);
  }

  #close<T>(why: TunnelEnd, tell: () => T): T {
    const { call, socket, admitted } = this.#carriage;
    const { content, signal } = call;
    this.#mode = 'over';
    clearTimeout(this.#timer);
    signal.removeEventListener('abort', this.#onClientGone);
    content.off('data', this.#onContent);
    content.off('end', this.#onContentEnd);
    content.off('close', this.#onContentClose);
    if (this.#takesContent) content.pause();
    const bytes = socket.bytesRead + socket.bytesWritten;
    if (bytes > this.#spentBytes) admitted.account.spend(bytes - this.#spentBytes);
    this.#outgoing?.destroy();
    socket.destroy();
    this.#tunnel?.close(why, socket.bytesWritten, socket.bytesRead);
    return tell();
  }
}

const broken = { code: 'destination_failed' } as const;

/** Returns why an answer cannot be passed on. After a 407, a client would send us its proxy credentials again. */
function faultOf(status: number): string | undefined {
  if (status === 407) return 'the destination answered 407, as a proxy would';
  return status < 200 || status > 599 ? `the destination answered with the status ${status}` : undefined;
}

function codeOf(error: Error | undefined): string {
  return error !== undefined && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
