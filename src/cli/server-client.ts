/**
 * HTTP client of the commands that manage a running server, with a key from the environment. A failure is one sentence
 * that says what to do; the key is never printed, nor sent elsewhere by a redirect.
 */
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { ConfigurationError } from '../config/inspection.ts';
import { type Environment, withSecretFiles } from '../config/load-settings.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { CommandFailure, usageFailure } from './failure.ts';
import type { Terminal } from './terminal.ts';

export type ServerArguments = { readonly url?: string };

export type ServerClient = {
  /** Base URL of the collections: `http://127.0.0.1:4000/api/v1` */
  readonly api: string;
  /**
   * Returns the JSON of the response; undefined if it has no content.
   * @param subject what the path names, for the message of a 404: `account ada@shop.example`
   */
  ask(method: string, path: string, options?: AskedRequest): Promise<unknown>;
  /** Reads a list page by page, at most `limit` items. */
  list<T>(path: string, limit: number): Promise<Listed<T>>;
  /** Returns the response as soon as its head arrives, whatever its status; its content may be endless. */
  open(path: string, init: OpenRequest): Promise<Response>;
  /**
   * Passes on the octets of a response as transferred, with their content coding, which `fetch` would remove.
   * @param take gets the pieces in turn; the next one waits for its promise
   */
  octets(path: string, subject: string, take: (chunk: Buffer) => Promise<void>): Promise<void>;
  /**
   * Sends content while it is read, and waits for the answer as long as the server takes content. Returns the JSON of the answer, also of a
   * refusal that says what was written before it.
   */
  stream(path: string, sending: Sending): Promise<unknown>;
  /** Returns the failure that explains a refusal. */
  refusal(answer: Response): Promise<CommandFailure>;
};

type AskedRequest = { readonly json?: unknown; readonly subject?: string | undefined };

type OpenRequest = Pick<RequestInit, 'method' | 'body' | 'duplex' | 'redirect' | 'signal'> & {
  readonly headers?: Readonly<Record<string, string>>;
};

export type Sending = {
  readonly type: string;
  readonly content: AsyncIterable<Uint8Array | string>;
  readonly subject: string;
};

export type Listed<T> = { readonly items: readonly T[]; readonly more: boolean };

const defaultUrl = 'http://127.0.0.1:4000';
const defaultBase = '/api/v1';
const endingSlashes = /\/+$/;
const answerMsMax = 30_000;
const loopbackNames: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);
const pageItemsMax = 200;

/** The keys that a command may use: an administrator's, one with the scope `webhooks`, or any or none. */
export type KeyUse = 'administrator' | 'webhooks' | 'any';

/** `forbidden` is the text about the key for a 403; that of an action explains itself. */
const keyWords: Readonly<Record<KeyUse, { readonly missing?: string; readonly forbidden?: string }>> = {
  administrator: {
    missing: 'set COMITY_ADMIN_KEY to the administrator key of the server',
    forbidden: "is not an administrator's",
  },
  webhooks: {
    missing: 'set COMITY_KEY to a key with the scope webhooks, or COMITY_ADMIN_KEY',
    forbidden: 'may not do this',
  },
  any: {},
};

/** Takes the key of COMITY_KEY before that of the administrator, where it may. */
export function openServer(terminal: Terminal, options: ServerArguments, use: KeyUse): ServerClient {
  const environment = withKeys(terminal.environment);
  const variable = use !== 'administrator' && environment.COMITY_KEY ? 'COMITY_KEY' : 'COMITY_ADMIN_KEY';
  const key = environment[variable] ?? '';
  const { missing, forbidden } = keyWords[use];
  if (key === '' && missing !== undefined) throw usageFailure(missing);
  return clientOf(terminal, options, { variable, key, forbidden });
}

const keyVariables: ReadonlySet<string> = new Set(['COMITY_ADMIN_KEY', 'COMITY_KEY', 'COMITY_LISTEN_SECRET']);

/**
 * Returns the environment with the client's keys, which may be in files.
 * @throws ConfigurationError
 */
export function withKeys(given: Environment): Environment {
  const mistakes: string[] = [];
  const environment = withSecretFiles(given, (variable) => keyVariables.has(variable), mistakes);
  if (mistakes.length > 0) throw new ConfigurationError(mistakes);
  return environment;
}

function clientOf(terminal: Terminal, options: ServerArguments, credential: Credential): ServerClient {
  const api = apiOf(options.url ?? (terminal.environment.COMITY_URL || defaultUrl));
  warnOfPlainHttp(terminal, api);
  const ask: ServerClient['ask'] = (method, path, requestOptions = {}) =>
    exchange(api, credential, method, path, requestOptions);
  return {
    api,
    ask,
    open: (path, init) =>
      reached(api, () =>
        fetch(`${api}${path}`, {
          redirect: 'error',
          ...init,
          headers: { ...(credential.key === '' ? {} : { 'X-API-Key': credential.key }), ...init.headers },
        }),
      ),
    octets: (path, subject, take) => transfer(api, credential, { path, subject, take }),
    stream: (path, sending) => sendStream(api, credential, path, sending),
    refusal: async (answer) => refusalOf(api, credential, answer, await answer.text()),
    async list<T>(path: string, limit: number) {
      const items: T[] = [];
      let cursor: string | null = null;
      do {
        const wanted = Math.min(pageItemsMax, limit - items.length);
        const separator = path.includes('?') ? '&' : '?';
        const from: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
        const page = (await ask('GET', `${path}${separator}limit=${wanted}${from}`)) as Page<T>;
        items.push(...page.items);
        cursor = page.nextCursor;
      } while (cursor !== null && items.length < limit);
      return { items, more: cursor !== null };
    },
  };
}

type Page<T> = { readonly items: readonly T[]; readonly nextCursor: string | null };

/** A URL without a path means the default base path; one with a path is the base of the collections. */
function apiOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw usageFailure(`the URL of the server must be like ${defaultUrl}, not ${JSON.stringify(text)}`);
  }
  const path = url.pathname === '/' ? defaultBase : url.pathname.replace(endingSlashes, '');
  return `${url.origin}${path}`;
}

/** As for the tokens of RFC 6750 §5.3: everyone on the network path can read the key. */
function warnOfPlainHttp(terminal: Terminal, api: string): void {
  const { protocol, hostname } = new URL(api);
  if (protocol === 'https:' || loopbackNames.has(hostname)) return;
  terminal.err(`comity: the key goes to ${hostname} unencrypted; use https`);
}

async function exchange(
  api: string,
  credential: Credential,
  method: string,
  path: string,
  { json, subject }: AskedRequest,
): Promise<unknown> {
  const answer = await reached(api, () =>
    fetch(`${api}${path}`, {
      method,
      headers: {
        'X-API-Key': credential.key,
        Accept: 'application/json',
        ...(json === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      redirect: 'error',
      signal: AbortSignal.timeout(answerMsMax),
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    }),
  );
  const text = await reached(api, () => answer.text());
  if (!answer.ok) throw refusalOf(api, credential, answer, text, subject);
  return text === '' ? undefined : jsonOf(api, text);
}

type Transfer = {
  readonly path: string;
  readonly subject: string;
  readonly take: (chunk: Buffer) => Promise<void>;
};

async function transfer(
  api: string,
  credential: Credential,
  { path, subject, take }: Transfer,
): Promise<void> {
  const headers = { 'X-API-Key': credential.key };
  const answer = await reached(api, () => requestOctets(`${api}${path}`, headers, answerMsMax));
  const { statusCode: status = 0 } = answer;
  if (status !== 200) {
    const text = await reached(api, () => answerText(answer));
    throw refusalOf(api, credential, { status }, text, subject);
  }
  const chunks: AsyncIterator<Buffer> = answer[Symbol.asyncIterator]();
  try {
    for (;;) {
      // Only reading is wrapped: an error of `take` is not the server's.
      const next = await reached(api, () => chunks.next());
      if (next.done === true) return;
      await take(next.value);
    }
  } finally {
    answer.destroy();
  }
}

async function sendStream(
  api: string,
  credential: Credential,
  path: string,
  { type, content, subject }: Sending,
): Promise<unknown> {
  const headers = { 'X-API-Key': credential.key, Accept: 'application/json', 'Content-Type': type };
  const request = requestOf(`${api}${path}`, { method: 'POST', headers });
  request.setSocketKeepAlive(true, keepAliveMs);
  const answered = responseOf(request);
  // Awaited below, whatever becomes of the content.
  answered.catch(ignoreError);
  await writeContent(request, content);
  const answer = await reached(api, () => answered);
  const text = await reached(api, () => answerText(answer));
  const { statusCode: status = 0 } = answer;
  answer.destroy();
  const json = problemOf(text) ?? undefined;
  if (status === 200) return jsonOf(api, text);
  if (json !== undefined && 'created' in json) return json;
  throw refusalOf(api, credential, { status }, text, subject);
}

const keepAliveMs = 30_000;

/** Writes content until the answer comes, which may be a refusal of what was sent. An error of the content ends the request. */
async function writeContent(
  request: ClientRequest,
  content: AsyncIterable<Uint8Array | string>,
): Promise<void> {
  let isOver = false;
  const over = new Promise<void>((resolve) => {
    for (const event of ['response', 'close'])
      request.once(event, () => {
        isOver = true;
        resolve();
      });
  });
  try {
    for await (const chunk of content) {
      if (isOver) return;
      if (!request.write(chunk))
        await Promise.race([new Promise((resolve) => request.once('drain', resolve)), over]);
    }
    request.end();
  } catch (error) {
    request.destroy();
    throw error;
  }
}

async function reached<T>(api: string, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    throw new CommandFailure(`${new URL(api).origin} ${reasonOf(error)}`, { cause: error });
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') {
    return `did not answer within ${answerMsMax / 1000} seconds`;
  }
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const detail = code !== '' ? ` (${code})` : cause instanceof Error ? ` (${cause.message})` : '';
  return `cannot be reached${detail}; is "comity serve" running there? --url or COMITY_URL names another server`;
}

function jsonOf(api: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CommandFailure(`${api} did not answer JSON; is that a Comity server?`, { cause: error });
  }
}

const answerCharactersMax = 65_536;

/**
 * Requests octets as they are transferred. `fetch` removes content codings, and fails if the content does not match its
 * Content-Encoding; the octets that a sender of webhooks signed must stay unchanged.
 * @param quietMsMax silence after which the request fails
 */
async function requestOctets(
  url: string,
  headers: Readonly<Record<string, string>>,
  quietMsMax: number,
): Promise<IncomingMessage> {
  const sent = requestOf(url, { headers });
  sent.setTimeout(quietMsMax, () => sent.destroy(new DOMException('no octet came in time', 'TimeoutError')));
  sent.end();
  return responseOf(sent);
}

function requestOf(
  url: string,
  {
    method = 'GET',
    headers,
  }: { readonly method?: string; readonly headers: Readonly<Record<string, string>> },
): ClientRequest {
  const request = url.startsWith('https:') ? requestTls : requestPlain;
  const options = { method, headers: { ...headers, 'Accept-Encoding': 'identity' }, agent: false };
  // A connection that breaks during the response emits an error on the request too, when `once` no longer listens.
  return ownEmitter(request(url, options), ignoreError);
}

async function responseOf(request: ClientRequest): Promise<IncomingMessage> {
  try {
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    return answer;
  } catch (error) {
    if (error instanceof Error && error.name === 'TimeoutError') throw error;
    // The cause is the reason, as with fetch.
    throw new TypeError('the request failed', { cause: error });
  }
}

async function answerText(answer: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of answer.setEncoding('utf8')) {
    text += chunk;
    if (text.length > answerCharactersMax) break;
  }
  return text;
}

type Credential = {
  /** Name of the variable that holds the key. */
  readonly variable: string;
  readonly key: string;
  /** See `keyWords`. */
  readonly forbidden: string | undefined;
};

type ProblemBody = {
  readonly error?: unknown;
  readonly errors?: readonly { readonly pointer: string; readonly message: string }[];
};

/**
 * Explains a refusal in one sentence that says what to do.
 * @param subject what the path names; undefined: nothing that could be missing
 */
function refusalOf(
  api: string,
  { variable, key, forbidden }: Credential,
  { status }: { readonly status: number },
  text: string,
  subject?: string,
): CommandFailure {
  const { origin } = new URL(api);
  if (status === 401 && key !== '')
    return new CommandFailure(`${origin} does not accept the key in ${variable}`);
  if (status === 403 && forbidden !== undefined)
    return new CommandFailure(`the key in ${variable} ${forbidden} on ${origin}`);
  if (status === 404 && subject !== undefined) return new CommandFailure(`there is no ${subject}`);
  const body = problemOf(text);
  if (body === undefined || (status === 404 && forbidden !== undefined)) {
    return new CommandFailure(`${api} answered ${status}; is that a Comity server, and its base path?`);
  }
  const faults = (body.errors ?? []).map(({ pointer, message }) => `${pointer.slice(1)} ${message}`);
  return new CommandFailure([String(body.error), ...faults].join(': '));
}

function problemOf(text: string): ProblemBody | undefined {
  try {
    const body = JSON.parse(text) as ProblemBody | null;
    return typeof body?.error === 'string' ? body : undefined;
  } catch {
    // Not from this program: a proxy in between answers in HTML.
    return undefined;
  }
}
