/**
 * One exchange from its call to its outcome, as undici's handler. Modes, in order; each is left once:
 *
 * - waiting: in a queue for a free or new connection. A late call is settled here, and undici skips its place in the queue.
 * - asking: on a connection, until the header section of the final answer. 1xx answers pass (RFC 9110 §15.2).
 * - reading: the content, to its end or to a limit. Whatever happens now, it is an answer.
 * - settled: later events are ignored. An answer that was read to its end leaves its connection for the next exchange; any other end closes
 *   it.
 *
 * One transition leads back, from asking to waiting, once: if a kept connection closes before the first octet of an answer, the receiver most
 * likely closed it as idle while the request was under way (RFC 9112 §9.3.1). The request is sent again; a receiver that got it twice
 * recognises its id.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Transform } from 'node:stream';
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';
import type { Dispatcher, Pool } from 'undici';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { classifyFailure, type Failure } from './dial-failure.ts';
import type { ExchangeCall, ExchangeOutcome, ExchangeTiming } from './exchange.ts';
import type { LineConnection, LineHandler, LineState } from './origin-line.ts';

export type AttemptTerms = ContentBounds & {
  readonly headBytesMax: number;
  /** For the content, after the header section. */
  readonly answerMs: number;
  readonly monotonic: () => number;
};

/** The connections to the origin, and the path with the query. */
type Route = { readonly pool: Pool; readonly path: string };

type Mode = 'waiting' | 'asking' | 'reading' | 'settled';
type Cut = 'long' | 'slow' | 'broken' | null;

/** 1xx answers before the final one; more of them are an attack. */
const informationalMax = 16;

export class ExchangeAttempt implements Dispatcher.DispatchHandler, LineHandler {
  line: LineState | undefined;
  readonly #terms: AttemptTerms;
  readonly #call: ExchangeCall;
  readonly #route: Route;
  readonly #settle: (attempt: ExchangeAttempt, outcome: ExchangeOutcome) => void;
  readonly #startedMs: number;
  #mode: Mode = 'waiting';
  #timer: NodeJS.Timeout;
  #hasRepeated = false;
  #controller: Dispatcher.DispatchController | undefined;
  #connection: LineConnection | undefined;
  #isReused = false;
  #sentMs: number | undefined;
  #firstByteMs: number | undefined;
  #headMs = 0;
  #status = 0;
  #informational = 0;
  #fields: IncomingHttpHeaders = {};
  #content: AnswerContent | undefined;

  /** Starts the timer only; `send` starts the exchange, and does nothing after the timeout. `settle` is called once. */
  constructor(
    terms: AttemptTerms,
    call: ExchangeCall,
    route: Route,
    settle: (attempt: ExchangeAttempt, outcome: ExchangeOutcome) => void,
  ) {
    this.#terms = terms;
    this.#call = call;
    this.#route = route;
    this.#settle = settle;
    this.#startedMs = terms.monotonic();
    this.#timer = setTimeout(endLate, call.timeoutMs, this);
  }

  get call(): ExchangeCall {
    return this.#call;
  }

  send(): void {
    if (this.#mode !== 'waiting') return;
    const { method, fields, body } = this.#call;
    const { pool, path } = this.#route;
    pool.dispatch(
      {
        path,
        method,
        // undici copies the fields and does not write to the list.
        headers: fields as string[],
        body: body as string | Buffer,
        // This attempt's own timer is exact to the millisecond; undici's are not.
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      this,
    );
  }

  /** The program stops: says nothing about the receiver. */
  abort(): void {
    if (this.#mode === 'settled') return;
    this.#fail({ failure: 'aborted', message: 'Comity stopped during the attempt' });
    this.#break();
  }

  endLate(): void {
    if (this.#mode === 'settled') return;
    if (this.#mode === 'reading') this.#answer('slow');
    else this.#fail({ failure: 'timeout', message: this.#explainLateness() });
    this.#break();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // undici then takes the request out of its queue and leaves the connection alone.
    if (this.#mode === 'settled') throw new Error('The exchange was abandoned in the queue');
    this.#controller = controller;
    this.#connection = this.line?.connection;
    this.#isReused = this.#connection?.isUsed ?? false;
    if (this.#connection !== undefined) this.#connection.isUsed = true;
    this.#mode = 'asking';
  }

  onRequestSent(): void {
    this.#sentMs = this.#terms.monotonic();
  }

  onResponseStarted(): void {
    if (this.#firstByteMs === undefined && this.#sentMs !== undefined) {
      this.#firstByteMs = this.#terms.monotonic() - this.#sentMs;
    }
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    fields: IncomingHttpHeaders,
  ): void {
    if (this.#mode !== 'asking') return;
    // HTTP/2 reports the first octet with the header section.
    this.onResponseStarted();
    if (status < 200) {
      this.#passInformational();
      return;
    }
    const { headBytesMax, answerMs, monotonic } = this.#terms;
    // undici enforces the limit for HTTP/1.1.
    if (this.#connection?.alpnProtocol === 'h2' && sizeOf(fields) > headBytesMax) {
      this.#fail({ failure: 'protocol', message: 'The header section of the answer is too long' });
      this.#break();
      return;
    }
    this.#mode = 'reading';
    this.#headMs = monotonic() - this.#startedMs;
    this.#status = status;
    this.#fields = fields;
    this.#content = new AnswerContent(this.#terms, readCodings(fields['content-encoding']));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(endLate, answerMs, this);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#mode !== 'reading' || this.#content?.add(chunk) !== false) return;
    this.#answer('long');
    this.#break();
  }

  onResponseEnd(): void {
    if (this.#mode !== 'reading') return;
    const socket = this.#connection?.alpnProtocol === 'h2' ? undefined : this.#connection?.socket;
    this.#answer(null);
    // The answer came before the request was sent: the next one would wait behind the rest of it.
    if (socket !== undefined && socket.writableLength > 0) socket.destroy();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#mode === 'settled') return;
    if (this.#mode === 'reading') {
      this.#answer('broken');
      return;
    }
    const failure = classifyFailure(error);
    if (failure.failure === 'reset' && this.#mayRepeat()) this.#repeat();
    else this.#fail(failure);
  }

  #passInformational(): void {
    this.#informational += 1;
    if (this.#informational <= informationalMax) return;
    this.#fail({
      failure: 'protocol',
      message: `The receiver sent more than ${informationalMax} interim answers`,
    });
    this.#break();
  }

  #mayRepeat(): boolean {
    if (this.#hasRepeated || !this.#isReused || this.#firstByteMs !== undefined) return false;
    const { pool } = this.#route;
    return !pool.closed && !pool.destroyed;
  }

  #repeat(): void {
    this.#hasRepeated = true;
    this.#mode = 'waiting';
    this.line = undefined;
    this.#controller = undefined;
    this.#connection = undefined;
    this.#isReused = false;
    this.#sentMs = undefined;
    // Not from within undici's own handling of the end of the connection.
    queueMicrotask(() => this.send());
  }

  #break(): void {
    this.#controller?.abort(new Error('The exchange has ended'));
  }

  #fail(failure: Failure): void {
    this.#mode = 'settled';
    clearTimeout(this.#timer);
    const timing = this.#timing(this.#terms.monotonic() - this.#startedMs);
    this.#settle(this, { kind: 'failed', ...failure, timing });
  }

  #answer(cut: Cut): void {
    this.#mode = 'settled';
    clearTimeout(this.#timer);
    const snippet = this.#content?.snippet() ?? '';
    if (typeof snippet === 'string') this.#settleAnswer(cut, snippet);
    else {
      snippet.then(
        (text) => this.#settleAnswer(cut, text),
        () => this.#settleAnswer(cut, ''),
      );
    }
  }

  #settleAnswer(cut: Cut, snippet: string): void {
    this.#settle(this, {
      kind: 'answered',
      status: this.#status,
      fields: keepFields(this.#fields),
      snippet,
      cut,
      protocol: this.#connection?.alpnProtocol === 'h2' ? 'h2' : 'http/1.1',
      reused: this.#isReused,
      address: this.#connection?.address ?? null,
      timing: this.#timing(this.#headMs),
    });
  }

  #timing(totalMs: number): ExchangeTiming {
    const made = this.#connection?.timing ?? this.line?.progress;
    const { dnsMs, connectMs, tlsMs } = made === undefined || this.#isReused ? nothingMade : made;
    return { dnsMs, connectMs, tlsMs, firstByteMs: this.#firstByteMs ?? null, totalMs };
  }

  #explainLateness(): string {
    const time = `The limit of ${this.#call.timeoutMs} ms was reached`;
    if (this.#mode === 'asking') return `${time} before there was an answer`;
    switch (this.line?.connection === undefined ? this.line?.progress?.phase : 'done') {
      case 'dns':
        return `${time} before the name resolved`;
      case 'connect':
        return `${time} before there was a connection`;
      case 'tls':
        return `${time} before the TLS handshake ended`;
      default:
        return `${time} before a connection was free`;
    }
  }
}

const nothingMade = { dnsMs: null, connectMs: null, tlsMs: null };

/** One function for all timers: a closure for each would cost more than the timer. */
function endLate(attempt: ExchangeAttempt): void {
  attempt.endLate();
}

// Reads the content of an answer up to its limit, and keeps its beginning for the log: uncompressed content no further than the snippet
// needs.

type ContentBounds = {
  /** Limit of the content, before and after decompression. */
  readonly answerBytesMax: number;
  readonly snippetCharacters: number;
};

class AnswerContent {
  readonly #bounds: ContentBounds;
  readonly #codings: readonly string[];
  readonly #keepBytesMax: number;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;

  constructor(bounds: ContentBounds, codings: readonly string[]) {
    const { answerBytesMax, snippetCharacters } = bounds;
    this.#bounds = bounds;
    this.#codings = codings;
    // The snippet may need any number of compressed octets.
    this.#keepBytesMax =
      codings.length === 0 ? Math.min(snippetBytes(snippetCharacters), answerBytesMax) : answerBytesMax;
  }

  /** Adds a chunk; false: the content exceeds its limit. */
  add(chunk: Uint8Array): boolean {
    const room = this.#keepBytesMax - this.#bytes;
    if (room > 0) this.#chunks.push(chunk.length <= room ? chunk : chunk.subarray(0, room));
    this.#bytes += chunk.length;
    return this.#bytes <= this.#bounds.answerBytesMax;
  }

  /** The text of what was kept: at once, unless it must be decompressed. */
  snippet(): string | Promise<string> {
    const { answerBytesMax, snippetCharacters } = this.#bounds;
    const [first = new Uint8Array()] = this.#chunks;
    const content = this.#chunks.length <= 1 ? first : Buffer.concat(this.#chunks);
    if (this.#codings.length === 0) return toSnippet(content, snippetCharacters);
    const bytesMax = Math.min(snippetBytes(snippetCharacters), answerBytesMax);
    return decodeBeginning(content, this.#codings, bytesMax).then((decoded) =>
      toSnippet(decoded, snippetCharacters),
    );
  }
}

/** Fields of an answer that are kept for the log of attempts; further ones are dropped. */
const answerFieldsMax = 64;

const answerFieldCharactersMax = 1024;

/** Lower-case names and values, one entry for each line of a repeated field. */
function keepFields(fields: IncomingHttpHeaders): readonly (readonly [string, string])[] {
  const kept: (readonly [string, string])[] = [];
  for (const name in fields) {
    if (!Object.hasOwn(fields, name)) continue;
    const value = fields[name];
    if (value === undefined) continue;
    for (const line of typeof value === 'string' ? [value] : value) {
      if (kept.length === answerFieldsMax) return kept;
      kept.push([
        name,
        line.length <= answerFieldCharactersMax ? line : line.slice(0, answerFieldCharactersMax),
      ]);
    }
  }
  return kept;
}

/** Approximate octets of the section; for HTTP/2, of its decompressed text. */
function sizeOf(fields: IncomingHttpHeaders): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(fields)) {
    for (const line of typeof value === 'string' ? [value] : (value ?? []))
      bytes += name.length + line.length + 4;
  }
  return bytes;
}

/** Octets of UTF-8 for one UTF-16 code unit, at most. */
const bytesPerCharacterMax = 3;

/** Codings in a row that are decoded; in practice there is one. */
const codingsMax = 2;

/**
 * Octets that a snippet of this many characters needs. Compressed content is decoded no further (RFC 9110 §8.4), so that a ratio of ten
 * thousand to one costs as much as one to one; undecodable content gives no text.
 */
function snippetBytes(characters: number): number {
  return characters * bytesPerCharacterMax;
}

/** Codings of a Content-Encoding field in the order of decoding; none for `identity`. */
export function readCodings(field: string | readonly string[] | undefined): readonly string[] {
  if (field === undefined) return [];
  const text = typeof field === 'string' ? field : field.join(',');
  return text
    .split(',')
    .map((part) => part.trim().toLowerCase())
    .filter((part) => part !== '' && part !== 'identity')
    .reverse();
}

/** At most `characters` UTF-16 code units of UTF-8; invalid octets become U+FFFD, and so does NUL, which the stores cannot hold. */
export function toSnippet(bytes: Uint8Array, characters: number): string {
  if (bytes.length === 0) return '';
  const wanted = snippetBytes(characters);
  const isWhole = bytes.length <= wanted;
  const part = isWhole ? bytes : bytes.subarray(0, wanted);
  // `stream` keeps back a character that is cut in two.
  const text = new TextDecoder().decode(part, { stream: !isWhole });
  const cut = text.length <= characters ? text : truncate(text, characters);
  return cut.includes('\0') ? cut.replaceAll('\0', '\ufffd') : cut;
}

/** The first octets of the decoded content, within limits; empty for an unknown coding. */
export async function decodeBeginning(
  bytes: Uint8Array,
  codings: readonly string[],
  bytesMax: number,
): Promise<Uint8Array> {
  if (codings.length > codingsMax) return new Uint8Array();
  let content = bytes;
  for (const coding of codings) {
    const decoder = decoderOf(coding, content);
    if (decoder === undefined) return new Uint8Array();
    content = await runBounded(decoder, content, bytesMax);
  }
  return content;
}

function decoderOf(coding: string, content: Uint8Array): Transform | undefined {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return ownEmitter(createGunzip(), ignoreError);
    case 'br':
      return ownEmitter(createBrotliDecompress(), ignoreError);
    case 'zstd':
      return ownEmitter(createZstdDecompress(), ignoreError);
    case 'deflate':
      // RFC 9110 §8.4.1.2: some send deflate without the zlib header, whose first octet has 8 in its low half.
      return ((content[0] ?? 0) & 0x0f) === 8
        ? ownEmitter(createInflate(), ignoreError)
        : ownEmitter(createInflateRaw(), ignoreError);
    default:
      return undefined;
  }
}

/** The output up to the limit, the end, or the first error. */
function runBounded(decoder: Transform, bytes: Uint8Array, bytesMax: number): Promise<Uint8Array> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    const finish = (): void => {
      decoder.destroy();
      resolve(Buffer.concat(chunks).subarray(0, bytesMax));
    };
    decoder.on('data', (chunk: Uint8Array) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= bytesMax) finish();
    });
    decoder.once('end', finish);
    // Truncated content ends in an error: what was decoded before is valid.
    decoder.on('error', finish);
    decoder.end(bytes);
  });
}

/** Cuts the text, but not within a surrogate pair. */
function truncate(text: string, characters: number): string {
  const last = text.charCodeAt(characters - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? characters - 1 : characters);
}
