/**
 * A client that speaks HTTP/1.1 over connections it keeps, sends exactly the fields that it is told to, and follows nothing. What
 * accounts need besides is here too: a jar of cookies, and the few calls that lead to a credential.
 */
import { Agent, request } from 'node:http';
import { after } from 'node:test';
import { type Answer as AnyAnswer, adminKey, messageOf, type RequestOptions, targetOf } from './exchange.ts';
import { assertAnswer } from './expected-answer.ts';
import { type RunningServer, type StartOptions, startServer } from './running-server.ts';

export const base = '/api/v1';

/** Without `as`, no credential is sent. */
export type Asked = Omit<RequestOptions, 'anonymous'>;

export type Answer = AnyAnswer & {
  /** The fields as they came, names and values in turn. */
  readonly rawHeaders: readonly string[];
};

export type Client = {
  readonly port: number;
  /** Requests that were answered. */
  readonly count: number;
  /** Sends no credential by itself. */
  ask(method: string, path: string, asked?: Asked): Promise<Answer>;
  close(): void;
};

/** Longer than the program takes for anything that these tests ask. */
const answerMsMax = 20_000;

export function openClient(port: number, connectionsMax = 16): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: connectionsMax });
  let count = 0;
  return {
    port,
    get count() {
      return count;
    },
    close: () => agent.destroy(),
    async ask(method, path, asked = {}) {
      const answer = await exchange(agent, port, method, path, asked);
      count += 1;
      if (asked.expect !== undefined) assertAnswer(answer, asked.expect, `${method} ${path}`);
      return answer;
    },
  };
}

/** A server and a client of it for all tests of a file, which end after them. */
export async function serveAccounts(
  options: StartOptions = {},
): Promise<{ readonly program: RunningServer; readonly client: Client }> {
  const program = await startServer(options);
  const client = openClient(program.port);
  after(async () => {
    client.close();
    await program.stop();
  });
  return { program, client };
}

function exchange(agent: Agent, port: number, method: string, path: string, asked: Asked): Promise<Answer> {
  const { headers, body } = messageOf(asked);
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: '127.0.0.1', port, agent, method, path: targetOf(path), headers },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            rawHeaders: response.rawHeaders,
            body: text,
            json: () => JSON.parse(text),
          });
        });
      },
    );
    sent.on('error', reject);
    sent.setTimeout(answerMsMax, () => sent.destroy(new Error(`${method} ${path} was not answered`)));
    sent.end(body);
  });
}

export const bearer = (token: string): Readonly<Record<string, string>> => ({
  Authorization: `Bearer ${token}`,
});

export const asAdministrator = bearer(adminKey);

export const basic = (user: string, password: string): Readonly<Record<string, string>> => ({
  Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

export const sessionCookieName = '__Host-comity_session';

/** What a login, a registration or a refresh gives out. */
export type Tokens = {
  readonly token: string;
  readonly refreshToken: string;
  readonly userId: string;
  /** `name=value` of the session cookie; empty without one. */
  readonly cookie: string;
};

export async function register(client: Client, email: string, password: string): Promise<Tokens> {
  const json = { email, password };
  return tokensOf(await client.ask('POST', `${base}/auth/register`, { json, expect: 201 }));
}

export async function login(
  client: Client,
  email: string,
  password: string,
  cookie = false,
): Promise<Tokens> {
  const json = { email, password, ...(cookie ? { cookie } : {}) };
  return tokensOf(await client.ask('POST', `${base}/auth/login`, { json, expect: 200 }));
}

export function tokensOf(answer: Answer): Tokens {
  const { token, refreshToken, user } = answer.json();
  return { token, refreshToken, userId: user?.id ?? '', cookie: cookieOf(answer) ?? '' };
}

/** `name=value` of the session cookie that an answer sets. */
export function cookieOf(answer: Answer): string | undefined {
  return setCookies(answer)
    .find((cookie) => cookie.startsWith(`${sessionCookieName}=`))
    ?.split(';', 1)[0];
}

export function setCookies(answer: Answer): readonly string[] {
  return answer.headers['set-cookie'] ?? [];
}

/** Changes an account as the administrator: roles, tenant, scopes, disabled. */
export async function changeUser(
  client: Client,
  id: string,
  json: Readonly<Record<string, unknown>>,
): Promise<void> {
  await client.ask('PATCH', `${base}/users/${id}`, { json, as: adminKey, expect: 200 });
}

export type MadeKey = { readonly id: string; readonly key: string };

export async function makeKey(
  client: Client,
  headers: Readonly<Record<string, string>>,
  json: Readonly<Record<string, unknown>> = {},
): Promise<MadeKey> {
  const answer = await client.ask('POST', `${base}/keys`, {
    json: { name: 'test', kind: 'secret', ...json },
    headers,
    expect: 201,
  });
  const { id, key } = answer.json();
  return { id, key };
}

/** Cookies by name as a browser keeps them for one host, without regard to path and scheme. */
export type Jar = {
  /** For `Cookie`; empty object when there is none. */
  fields(): Readonly<Record<string, string>>;
  take(answer: Answer): void;
};

export function createJar(): Jar {
  const cookies = new Map<string, string>();
  return {
    fields: () =>
      cookies.size === 0
        ? {}
        : { Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    take(answer) {
      for (const line of setCookies(answer)) {
        const [pair = '', ...attributes] = line.split(';');
        const equals = pair.indexOf('=');
        const name = pair.slice(0, equals).trim();
        const over = attributes.some((attribute) => /^\s*Max-Age\s*=\s*0*$/i.test(attribute));
        if (over) cookies.delete(name);
        else cookies.set(name, pair.slice(equals + 1).trim());
      }
    },
  };
}
