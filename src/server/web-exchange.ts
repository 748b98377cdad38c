/**
 * One request of the Web's `fetch` and its response, in this process and without a socket: the `Request` of the handler. Limits, deadlines
 * and the memory budget are those of other requests. The signal of the request aborts it, and cancelling the content of a response that
 * stays open ends its producer.
 */
import { Socket } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { type Response as Answer, type Handler, isFile, isStream } from '../http/message.ts';
import { type RequestFields, readRequestFields } from '../http/request-fields.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { Connection } from './connection.ts';
import type { ContentSource } from './content-reading.ts';
import type { Context } from './context.ts';
import { type FileSending, whenOpened } from './file-sending.ts';
import { handle, problemAnswer } from './handle.ts';
import { capOpen, openStream } from './open-stream.ts';
import { RequestUnderWay } from './request-under-way.ts';

export type FetchOptions = {
  /** The address that limits count the caller by, and that the log names. Default `127.0.0.1`. */
  readonly address?: string | undefined;
  /** In place of the handler of all requests. */
  readonly handler?: Handler | undefined;
};

const loopback = '127.0.0.1';

/** What all of them count as, in place of the connection of a socket. */
export function inProcessConnection(monotonic: () => number): Connection {
  return new Connection(ownEmitter(new Socket(), ignoreError), monotonic());
}

/** Rejects with the reason of the request's signal, if that is aborted before there is a response. */
export function fetchInProcess(
  context: Context,
  connection: Connection,
  request: Request,
  { address = loopback, handler }: FetchOptions = {},
): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  const { signal } = request;
  if (signal.aborted) return Promise.reject(signal.reason);
  const exchange = new WebExchange(context, connection, { request, address, resolve });
  const onAbort = (): void => {
    reject(signal.reason);
    exchange.failContent('content_malformed');
    exchange.cut();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  exchange.whenClosed(() => signal.removeEventListener('abort', onAbort));
  exchange.begin();
  handle(exchange, handler);
  return promise;
}

type Asked = {
  readonly request: Request;
  readonly address: string;
  readonly resolve: (response: Response) => void;
};

class WebExchange extends RequestUnderWay {
  readonly method: string;
  readonly target: string;
  readonly version = '1.1';
  readonly fields: RequestFields;
  readonly rawFields: readonly string[];
  /** The content of a response that stays open; its end is that of the exchange. */
  readonly sink: PassThrough = ownEmitter(new PassThrough(), ignoreError);
  readonly #asked: Asked;
  #content: Readable | undefined;
  #status: number | undefined;

  constructor(context: Context, connection: Connection, asked: Asked) {
    super(context, connection);
    const { request } = asked;
    const url = new URL(request.url);
    this.#asked = asked;
    this.method = request.method;
    this.target = `${url.pathname}${url.search}`;
    const rawFields = ['Host', url.host];
    for (const [name, value] of request.headers) if (name !== 'host') rawFields.push(name, value);
    this.rawFields = rawFields;
    this.fields = readRequestFields(rawFields);
    // Content of unknown length, which HTTP/1.1 marks with a transfer coding.
    if (request.body === null) this.fields.contentLength = undefined;
    else if (this.fields.contentLength === undefined) this.fields.transferEncoding = 'chunked';
  }

  override get peer(): string {
    return this.#asked.address;
  }

  get announcesContent(): boolean {
    return this.#asked.request.body !== null;
  }

  protected get contentSource(): ContentSource | undefined {
    const { body } = this.#asked.request;
    if (body === null || body.locked) return undefined;
    // A stream that fails is closed without an end, as by a client that left.
    const content = ownEmitter(Readable.fromWeb(body), ignoreError);
    this.#content = content;
    return Object.assign(content, { aborted: false });
  }

  protected writeContinue(): void {
    // The caller sends its content when it is read.
  }

  get sentStatus(): number | undefined {
    return this.#status;
  }

  send(given: Answer): void {
    this.leaveContent();
    // What is not read cannot be: the caller learns that its stream is not needed.
    this.#content?.destroy();
    const answer = withoutConversation(this, capOpen(this, given));
    whenOpened(this, answer, (response, file) => this.#give(response, file));
  }

  #give(response: Answer, file: FileSending | undefined): void {
    const { status, content } = response;
    this.#status = status;
    this.#asked.resolve(new Response(this.#body(response), { status, headers: this.#headers(response) }));
    if (file !== undefined) this.#sendFile(file);
    else if (isStream(content) && response.headOnly !== true && !this.sink.destroyed)
      openStream(this, content);
    else this.sink.destroy();
    this.settle(response);
  }

  /** No connection watches over it: a caller that reads no further would keep the file open. */
  #sendFile(file: FileSending): void {
    const { connection, context } = this;
    const look = (): void => {
      if (file.waitsForReading) timer.refresh();
      else this.cut();
    };
    const timer = setTimeout(look, context.limits.answerStallTimeoutMs).unref();
    // A drain waits for it.
    connection.underWay += 1;
    file.send({
      passesOn: true,
      onProgress: () => timer.refresh(),
      onOver: () => {
        clearTimeout(timer);
        connection.underWay -= 1;
        file.close();
      },
    });
  }

  #body({ status, content, headOnly }: Answer): ConstructorParameters<typeof Response>[0] {
    if (headOnly === true || status === 204 || status === 304 || content === null) return null;
    if (typeof content === 'string') return content;
    if (isFile(content)) return content.bytes === 0 ? new Uint8Array(0) : Readable.toWeb(this.sink);
    // The octets may be those of a cache: the caller gets a copy.
    return isStream(content) ? Readable.toWeb(this.sink) : new Uint8Array(content);
  }

  #headers({ fields, content, octets, status }: Answer): Headers {
    const { context } = this;
    const headers = new Headers();
    const all = [...fields, ...context.fieldsOfAll];
    for (let at = 0; at + 1 < all.length; at += 2) headers.append(all[at] ?? '', all[at + 1] ?? '');
    headers.set('Date', context.formatDate(context.clock()));
    if (!isStream(content) && status !== 204 && status !== 304)
      headers.set(
        'Content-Length',
        String(isFile(content) ? content.bytes : (octets ?? Buffer.byteLength(content ?? ''))),
      );
    return headers;
  }

  cut(): void {
    this.sink.destroy();
  }

  whenClosed(listener: () => void): void {
    this.sink.once('close', listener);
  }

  get isGone(): boolean {
    return this.sink.destroyed;
  }

  endForGood(): void {
    this.sink.end();
  }
}

/** A request of `fetch` cannot become a WebSocket, a tunnel or another protocol. */
function withoutConversation(exchange: WebExchange, response: Answer): Answer {
  if (response.conversation === undefined) return response;
  const message = 'a request of fetch cannot be upgraded: open a connection to a server';
  return problemAnswer({ code: 'handshake_invalid', message }, exchange);
}
