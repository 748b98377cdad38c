/**
 * Starts the real program as its own process for one test file, and speaks to it over real sockets.
 *
 * With COMITY_TEST_PROTOCOL=h2c requests are sent over HTTP/2 with prior knowledge, all of a program on one connection, so that test/wire can
 * be run over either protocol. Answers look as they would over HTTP/1.1, without the fields of its connection.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type TestServer, testServer } from '../postgres/cluster.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
export const adminKey = 'sk_test_0123456789abcdef';
export const shopConfig = join(root, 'examples/shop/comity.config.ts');

/** With COMITY_TEST_CONTENT=threads all content is parsed and checked on threads, however short: answers must be the same. */
const onThreads: Readonly<Record<string, string>> =
  process.env['COMITY_TEST_CONTENT'] === 'threads' ? { COMITY_CONTENT_INLINE_BYTES_MAX: '0' } : {};

/** How long the program may take to be ready or to stop before the test gives up. */
const patienceMs = 20_000;

export type Answer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The body as JSON; throws where it is none. */
  readonly json: () => Record<string, unknown>;
};

export type RequestOptions = {
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
  /** Sent as JSON, with its Content-Type unless one is given. */
  readonly json?: unknown;
  /** Send no credential. Default: the administrator key as Bearer. */
  readonly anonymous?: boolean;
};

export type Program = {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly process: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  send(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
};

export type StartOptions = {
  readonly env?: Readonly<Record<string, string>>;
  /** Data folder; a new one, removed by `stop`, unless given. */
  readonly folder?: string;
  readonly config?: string;
  /** What runs the program's command in its place, such as a shell that enters a control group first. */
  readonly wrap?: (command: string, args: readonly string[]) => readonly [string, readonly string[]];
};

/**
 * With COMITY_TEST_STORE=postgres every program that names no database has one of its own, which stays with its folder:
 * so all of test/wire can be run on either store.
 */
const databases = new Map<string, TestServer>();

/** The variable that names the database of the folder's program, made with the first call; none where the store is embedded. */
export async function databaseOf(
  folder: string,
  env: StartOptions['env'],
): Promise<{ readonly COMITY_DATABASE_URL?: string }> {
  if (process.env.COMITY_TEST_STORE !== 'postgres' || env?.COMITY_DATABASE_URL !== undefined) return {};
  const known = databases.get(folder) ?? (await testServer());
  databases.set(folder, known);
  return { COMITY_DATABASE_URL: known.url };
}

export async function startProgram(options: StartOptions = {}): Promise<Program> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'comity-test-')));
  const database = await databaseOf(folder, options.env);
  const args = [join(root, 'src/main.ts'), 'serve'];
  const [command, commandArgs] = options.wrap?.(process.execPath, args) ?? [process.execPath, args];
  const child = spawn(command, commandArgs, {
    cwd: root,
    env: {
      PATH: process.env['PATH'],
      COMITY_CONFIG: options.config ?? shopConfig,
      COMITY_PORT: '0',
      COMITY_DATA: folder,
      COMITY_ADMIN_KEY: adminKey,
      // A thousandth of the work: what hashing costs is a matter of its own tests.
      COMITY_PASSWORD_MEMORY_KIBIBYTES: '64',
      COMITY_PASSWORD_PASSES: '1',
      ...database,
      ...onThreads,
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  const url = await ready(child, () => `${stdout}\n${stderr}`);
  const port = Number(new URL(url).port);
  return {
    url,
    port,
    folder,
    process: child,
    stdout: () => stdout,
    stderr: () => stderr,
    send: (method, path, requestOptions) => send(port, method, path, requestOptions),
    async stop() {
      child.kill('SIGTERM');
      const code = await exited;
      sessions.get(port)?.destroy();
      if (options.folder === undefined) {
        await rm(folder, { recursive: true, force: true });
        await databases.get(folder)?.dispose();
      }
      return code;
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

function ready(child: ChildProcess, output: () => string): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`the program was not ready in time:\n${output()}`));
    }, patienceMs);
    const look = () => {
      const line = /^comity listening on (http:\/\/\S+)$/m.exec(output());
      if (line?.[1] === undefined) return;
      clearTimeout(timer);
      child.stdout?.off('data', look);
      resolve(line[1]);
    };
    child.stdout?.on('data', look);
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`the program ended with ${code} before it was ready:\n${output()}`));
    });
  });
}

/** One request with exactly the fields given besides Host and the credential; over HTTP/1.1 on a connection of its own. */
export function send(
  port: number,
  method: string,
  path: string,
  options: RequestOptions = {},
): Promise<Answer> {
  const body = options.json === undefined ? options.body : JSON.stringify(options.json);
  const headers: Record<string, string | string[]> = {};
  if (options.anonymous !== true) headers['Authorization'] = `Bearer ${adminKey}`;
  if (options.json !== undefined) headers['Content-Type'] = 'application/json';
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    headers[name] = typeof value === 'string' ? value : [...value];
  }
  if (body !== undefined) headers['Content-Length'] = String(Buffer.byteLength(body));
  const sent = { port, method, path, headers, body };
  return process.env['COMITY_TEST_PROTOCOL'] === 'h2c' ? sendHttp2(sent) : sendHttp1(sent);
}

type Sent = {
  readonly port: number;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: string | Uint8Array | undefined;
};

function sendHttp1({ port, method, path, headers, body }: Sent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: '127.0.0.1', port, method, path, headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => resolve(answerOf(response.statusCode ?? 0, response.headers, chunks)));
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** By port: a program that was started again has a connection of its own. */
const sessions = new Map<number, ClientHttp2Session>();

/** What a test sends is its own affair. Missing in the types of node. */
const lenient = { strictSingleValueFields: false };

function sessionOf(port: number): ClientHttp2Session {
  const known = sessions.get(port);
  if (known !== undefined && !known.closed && !known.destroyed) return known;
  const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: {}, ...lenient });
  session.on('error', () => session.destroy());
  session.unref();
  sessions.set(port, session);
  return session;
}

/** Host becomes `:authority`; everything else goes as it is. */
function sendHttp2({ port, method, path, headers, body }: Sent): Promise<Answer> {
  const { Host: host, ...others } = headers;
  const authority = host === undefined ? `127.0.0.1:${port}` : String(host);
  return new Promise((resolve, reject) => {
    const session = sessionOf(port);
    const stream = session.request(
      { ...others, ':method': method, ':path': path, ':authority': authority },
      { endStream: body === undefined },
    );
    // Only while something is asked does the connection keep the test alive.
    session.ref();
    const chunks: Buffer[] = [];
    let found: IncomingHttpHeaders | undefined;
    stream.on('response', (fields) => {
      found = fields;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('close', () => {
      session.unref();
      if (found === undefined) reject(new Error(`no answer to ${method} ${path}`));
      else {
        const { ':status': status, ...fields } = found;
        resolve(answerOf(Number(status), fields, chunks));
      }
    });
    if (body !== undefined) stream.end(body);
  });
}

function answerOf(status: number, headers: IncomingHttpHeaders, chunks: readonly Buffer[]): Answer {
  const text = Buffer.concat(chunks).toString('utf8');
  return { status, headers, body: text, json: () => JSON.parse(text) as Record<string, unknown> };
}
