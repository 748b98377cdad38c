/**
 * Starts the real program as its own process for one test file, and speaks to it over real sockets.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type TestServer, testServer } from '../postgres/cluster.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
export const adminKey = 'sk_test_0123456789abcdef';
export const shopConfig = join(root, 'examples/shop/comity.config.ts');

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
};

/**
 * With COMITY_TEST_STORE=postgres every program that names no database has one of its own, which stays with its folder:
 * so all of test/wire can be run on either store.
 */
const databases = new Map<string, TestServer>();

async function databaseOf(
  folder: string,
  env: StartOptions['env'],
): Promise<Readonly<Record<string, string>>> {
  if (process.env.COMITY_TEST_STORE !== 'postgres' || env?.COMITY_DATABASE_URL !== undefined) return {};
  const known = databases.get(folder) ?? (await testServer());
  databases.set(folder, known);
  return { COMITY_DATABASE_URL: known.url };
}

export async function startProgram(options: StartOptions = {}): Promise<Program> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'comity-test-')));
  const database = await databaseOf(folder, options.env);
  const child = spawn(process.execPath, [join(root, 'src/main.ts'), 'serve'], {
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

/** One request on a connection of its own, with exactly the fields given besides Host and the credential. */
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
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: '127.0.0.1', port, method, path, headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: text,
            json: () => JSON.parse(text) as Record<string, unknown>,
          });
        });
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}
