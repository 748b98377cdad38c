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
import type { Settings } from '../config/settings.ts';
import { codeOf } from '../egress/dial-failure.ts';
import type { Request, Response } from '../http/message.ts';
import { parseFieldList } from '../http/syntax/field-value.ts';
import type { TunnelEnd } from '../observe/observation.ts';
import { ignoreError, onEnd, ownEmitter } from '../observe/own-emitter.ts';
import type { Admitted, OpenTunnel, Reached } from './admission.ts';
import { type Destination, hopsLeft } from './destination.ts';
import { type ForwardCall, proxyName, type Refusal } from './proxy-call.ts';

export type Carriage = {
  readonly call: ForwardCall;
  readonly admitted: Admitted;
  readonly socket: Socket;
  readonly reached: Reached;
  readonly path: string;
  readonly limits: Pick<Settings, 'tunnelAnswerMs' | 'tunnelIdleMs'>;
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
    const { call, admitted, socket, reached, path } = this.#carriage;
    // The request or its answer reports any failure of the connection; later errors are ignored.
    ownEmitter(socket, ignoreError);
    this.#tunnel = admitted.open(reached, (why) => this.#cut(why));
    if (call.signal.aborted) {
      this.#end('client-reset');
      return;
    }
    call.signal.addEventListener('abort', this.#onClientGone);
    this.#movedMs = performance.now();
    this.#watch();
    try {
      this.#outgoing = ownEmitter(
        openRequest({
          createConnection: () => socket,
          method: call.request.method,
          path,
          headers: requestFields(call.request, admitted.destination, framing, proxyName),
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
      const fields = answerFields(rawHeaders, statusCode, '', proxyName);
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
    const { call } = this.#carriage;
    const { statusCode = 0, rawHeaders, httpVersion } = answer;
    this.#moved();
    if (this.#mode !== 'asking') return;
    const fault = faultOf(statusCode);
    if (fault !== undefined) {
      this.#refuse({ ...broken, error: 'http_protocol_error', details: fault }, 'destination-reset');
      return;
    }
    this.#mode = 'answering';
    const sink = call.answer(statusCode, answerFields(rawHeaders, statusCode, httpVersion, proxyName));
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
    const { socket, admitted } = this.#carriage;
    this.#movedMs = performance.now();
    const bytes = socket.bytesRead + socket.bytesWritten;
    const spent = bytes - this.#spentBytes;
    this.#spentBytes = bytes;
    if (spent > 0 && this.#mode !== 'over' && !admitted.account.spend(spent)) this.#cut('bytes');
  }

  /** One timer for the whole exchange, set again when it fires too early: octets move far more often than it does. */
  #watch(): void {
    const { limits } = this.#carriage;
    const boundMs = this.#mode === 'asking' ? limits.tunnelAnswerMs : limits.tunnelIdleMs;
    const leftMs = this.#movedMs + boundMs - performance.now();
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

// The fields of forwarded requests and their answers (RFC 9110 §7.6). Fields of one connection are removed: those below
// and those that Connection names. Framing is written anew and never copied, so that no later recipient reads another
// end into the message (RFC 9112 §11.2). Trailers and the fields that announce them are dropped (RFC 9110 §6.5).

/** RFC 9110 §7.6.1; older: `Keep-Alive`, `Proxy-Connection` (RFC 9112 §C.2.2), HTTP2-Settings (RFC 7540 §3.2.1). */
const ofConnection = [
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
] as const;

/** Credentials for this proxy, and fields that are written anew. */
const ofRequest: ReadonlySet<string> = new Set([
  ...ofConnection,
  'content-length',
  'expect',
  'host',
  'proxy-authorization',
]);

/** Fields by which a proxy addresses its own client; the destination is not one. */
const ofAnswer: ReadonlySet<string> = new Set([
  ...ofConnection,
  'proxy-authenticate',
  'proxy-authentication-info',
]);

type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly length: string }
  | { readonly kind: 'chunked' };

/** Methods that need no Content-Length without content (RFC 9110 §8.6). */
const bare: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);

/**
 * The fields of a request for a destination, as a flat list.
 * @param via this proxy's name in Via, after the version in which the message was received
 */
export function requestFields(
  request: Request,
  destination: Destination,
  framing: Framing,
  via: string,
): string[] {
  const { rawFields, version, method } = request;
  const named = namedByConnection(rawFields);
  const hops = hopsLeft(request);
  const kept = ['Host', hostOf(destination)];
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const name = rawFields[at] ?? '';
    const lower = name.toLowerCase();
    if (lower.startsWith(':') || ofRequest.has(lower) || named?.has(lower)) continue;
    if (lower === 'max-forwards' && hops !== undefined) kept.push(name, String(hops - 1));
    else kept.push(name, rawFields[at + 1] ?? '');
  }
  if (framing.kind === 'chunked') kept.push('Transfer-Encoding', 'chunked');
  else if (framing.kind === 'length') kept.push('Content-Length', framing.length);
  else if (!bare.has(method)) kept.push('Content-Length', '0');
  if (awaitsContinue(request)) kept.push('Expect', '100-continue');
  kept.push('Via', `${version === '2.0' ? '2' : version} ${via}`, 'Connection', 'close');
  return kept;
}

/** The fields of an answer. @param version of the answer, such as `1.1` @param status of the forwarded answer */
export function answerFields(
  rawFields: readonly string[],
  status: number,
  version: string,
  via: string,
): string[] {
  const named = namedByConnection(rawFields);
  const kept: string[] = [];
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    const name = rawFields[at] ?? '';
    const lower = name.toLowerCase();
    if (ofAnswer.has(lower) || named?.has(lower)) continue;
    // 1xx and 204 must have none (RFC 9110 §8.6).
    if (lower === 'content-length' && (status < 200 || status === 204)) continue;
    kept.push(name, rawFields[at + 1] ?? '');
  }
  if (status >= 200) kept.push('Via', `${version} ${via}`);
  return kept;
}

/** RFC 9110 §10.1.1: an expectation of an HTTP/1.0 client is ignored. */
function awaitsContinue({ version, fields }: Request): boolean {
  return version !== '1.0' && fields.expect?.toLowerCase() === '100-continue';
}

/** Names that Connection lists; undefined without the field. A malformed list counts as empty. */
function namedByConnection(rawFields: readonly string[]): ReadonlySet<string> | undefined {
  let named: Set<string> | undefined;
  for (let at = 0; at + 1 < rawFields.length; at += 2) {
    if (rawFields[at]?.toLowerCase() !== 'connection') continue;
    named ??= new Set();
    for (const token of parseFieldList(rawFields[at + 1] ?? '') ?? []) named.add(token);
  }
  // Connection must not remove the length of the content.
  named?.delete('content-length');
  return named;
}

/** Host as in a URL: without the default port of http. */
function hostOf({ host, port }: Destination): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === 80 ? name : `${name}:${port}`;
}

/**
 * Determines the framing of a request's content for the destination (RFC 9112 §6). HTTP/1.1 fields tell; HTTP/2 does
 * not need them (RFC 9113 §8.1), so it waits for the first octets or the end, unless the client waits for 100
 * (Continue) from the destination.
 */
async function framingOf({ request, content, signal }: ForwardCall): Promise<Framing> {
  const { fields, version } = request;
  if (fields.contentLength !== undefined) return { kind: 'length', length: fields.contentLength };
  if (fields.transferEncoding === undefined) return { kind: 'none' };
  if (version !== '2.0') return { kind: 'chunked' };
  if (!awaitsContinue(request) && content.readableLength === 0 && !content.readableEnded && !signal.aborted) {
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        for (const event of ['readable', 'end', 'close']) content.off(event, settle);
        signal.removeEventListener('abort', settle);
        resolve();
      };
      for (const event of ['readable', 'end', 'close']) content.on(event, settle);
      signal.addEventListener('abort', settle);
    });
  }
  const isEmpty = content.readableLength === 0 && !awaitsContinue(request);
  return isEmpty ? { kind: 'none' } : { kind: 'chunked' };
}
