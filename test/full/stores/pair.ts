/**
 * The program twice, once on each store, in this process and behind real sockets, with the same clock and the same
 * randomness. Every request goes to both, one after the other, and the answers must be the same: status, every header
 * field in its order, and every octet of the content.
 */
import assert from 'node:assert/strict';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { loadConfiguration } from '../../../src/config/load-configuration.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { parseLink } from '../../../src/http/syntax/link.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { compose, type Running } from '../../../src/running.ts';
import { addressOf } from '../../../src/store/postgres/connection/address.ts';
import { migrateSchema } from '../../../src/store/postgres/schema/migrate.ts';
import { storeTables } from '../../../src/store-tables.ts';
import { adminKey } from '../../harness/exchange.ts';
import { emptyDatabase } from '../../harness/postgres-database.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { type Connection, connectTo, type Received, type Sent } from './exchange.ts';
import { createSeeded, type Seeded } from './seeded.ts';

export type Asked = {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Sent as JSON, with its Content-Type unless one is given. */
  readonly json?: unknown;
  /** Without the administrator's key. */
  readonly anonymous?: boolean;
};

export type Answer = {
  readonly status: number;
  readonly text: string;
  readonly etag: string;
  readonly location: string;
  field(name: string): string | undefined;
  json(): Record<string, unknown>;
  /** Target of the link with this relation. */
  link(rel: string): string | undefined;
};

export type Pair = {
  /** Asks both, with the status that is to come, or `any` where only agreement matters. A difference is kept for `settle`. */
  ask(method: string, path: string, status: number | 'any', asked?: Asked): Promise<Answer>;
  /** Asks both many times at once, each on connections of its own; the statuses of each, sorted, must agree. */
  race(times: number, method: string, path: string, asked: Asked): Promise<readonly number[]>;
  /** Waits on both until what was accepted with 202 has ended. */
  ended(operation: string): Promise<void>;
  /** Fails with the differences since the last time. */
  settle(): void;
  /** Requests sent to both so far. */
  readonly requests: number;
  /** Ports of the two. */
  readonly ports: readonly [number, number];
  /** Stops both and starts them over the same data with another configuration. */
  restart(configPath: string): Promise<void>;
  stop(): Promise<void>;
};

type Engine = { readonly name: string; readonly environment: Readonly<Record<string, string>> };

type Twin = {
  readonly engine: Engine;
  readonly seeded: Seeded;
  readonly running: Running;
  readonly connection: Connection;
  readonly port: number;
  /** What the program observed and did not answer for: shown beside a difference. */
  readonly failures: string[];
};

/**
 * Where the clock of both begins, and how far a request moves it: some requests share a millisecond. It is ahead of the database's, so that
 * both stores raise their revisions by it.
 */
export const firstTime = Date.UTC(2099, 0, 31, 12);
export const stepsMs = [0, 1, 999, 0, 1001, 60_000];
const endedMsMax = 10_000;
export const differencesMax = 8;
const shownCharactersMax = 600;
const host = 'comity.test';

export async function startPair(configPath: string): Promise<Pair> {
  const server = await emptyDatabase();
  const folder = temporaryFolder();
  const engines: readonly [Engine, Engine] = [
    { name: 'SQLite', environment: { COMITY_DATA: join(folder, 'data') } },
    {
      name: 'PostgreSQL',
      environment: {
        COMITY_DATA: join(folder, 'none'),
        COMITY_DATABASE_URL: server.url,
      },
    },
  ];
  const tidy = async (): Promise<void> => {
    await server.dispose();
  };
  const clock = { now: firstTime, seed: 1 };
  const started: Twin[] = [];
  try {
    for (const engine of engines) started.push(await startTwin(engine, configPath, clock));
  } catch (error) {
    for (const twin of started) await stopTwin(twin);
    await tidy();
    throw error;
  }
  const [one, other] = started as [Twin, Twin];
  return new TwoPrograms(clock, [one, other], tidy);
}

type Moment = { now: number; seed: number };

class TwoPrograms implements Pair {
  requests = 0;
  readonly #onStopped: () => Promise<void>;
  readonly #moment: Moment;
  #twins: readonly [Twin, Twin];
  #differences: string[] = [];
  #stopped = false;

  constructor(moment: Moment, twins: readonly [Twin, Twin], onStopped: () => Promise<void>) {
    this.#onStopped = onStopped;
    this.#moment = moment;
    this.#twins = twins;
  }

  get ports(): readonly [number, number] {
    return [this.#twins[0].port, this.#twins[1].port];
  }

  async ask(method: string, path: string, status: number | 'any', asked: Asked = {}): Promise<Answer> {
    const sent = toSend(method, path, asked);
    this.#tick();
    const [one, other] = this.#twins;
    const first = await one.connection.exchange(sent);
    const second = await other.connection.exchange(sent);
    const difference = compare(first, second);
    if (difference !== undefined) this.#differ(sent, difference);
    if (status !== 'any' && first.status !== status) {
      this.#differ(sent, `${status} was to come, and ${one.engine.name} answered\n${show(first)}`);
    }
    return answerOf(first);
  }

  async race(times: number, method: string, path: string, asked: Asked): Promise<readonly number[]> {
    const sent = toSend(method, path, asked);
    this.#tick();
    const statuses: (readonly number[])[] = [];
    for (const { port } of this.#twins) {
      const connections = Array.from({ length: times }, () => connectTo(port));
      const answers = await Promise.all(connections.map((connection) => connection.exchange(sent)));
      for (const connection of connections) connection.close();
      statuses.push(answers.map((answer) => answer.status).sort());
    }
    const [first = [], second = []] = statuses;
    if (first.join() !== second.join()) {
      this.#differ(sent, `raced ${times} times: ${first.join(' ')} and ${second.join(' ')}`);
    }
    return first;
  }

  async ended(operation: string): Promise<void> {
    const sent = toSend('GET', operation, {});
    this.requests += 1;
    for (const { connection } of this.#twins) {
      for (const deadline = Date.now() + endedMsMax; ; ) {
        const { status, body } = await connection.exchange(sent);
        if (status !== 200 || !body.toString().includes('"pending"')) break;
        if (Date.now() > deadline) throw new Error(`${operation} has not ended: ${body}`);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
  }

  settle(): void {
    const found = this.#differences;
    this.#differences = [];
    assert.equal(
      found.length,
      0,
      `\n${found.slice(0, differencesMax).join('\n\n')}\n${found.length} differences`,
    );
  }

  async restart(configPath: string): Promise<void> {
    const [one, other] = this.#twins;
    await this.#stopTwins();
    this.#tick();
    await migrate(other.engine, configPath);
    this.#twins = [
      await startTwin(one.engine, configPath, this.#moment),
      await startTwin(other.engine, configPath, this.#moment),
    ];
    this.#stopped = false;
  }

  async stop(): Promise<void> {
    await this.#stopTwins();
    await this.#onStopped();
  }

  async #stopTwins(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    await Promise.all(this.#twins.map(stopTwin));
  }

  #tick(): void {
    this.requests += 1;
    this.#moment.seed = this.requests + 1;
    this.#moment.now += stepsMs[this.requests % stepsMs.length] ?? 1;
    for (const { seeded } of this.#twins) seeded.set(this.#moment.now, this.#moment.seed);
  }

  #differ(sent: Sent, what: string): void {
    const body = sent.body === undefined ? '' : `\n  ${cut(Buffer.from(sent.body).toString())}`;
    const failures = this.#twins.flatMap(({ engine, failures: all }) =>
      all.splice(0).map((failure) => `\n  ${engine.name} observed: ${failure}`),
    );
    this.#differences.push(`${sent.method} ${sent.path}${body}\n${what}${failures.join('')}`);
  }
}

/** What `comity migrate` does before processes with another declaration start; the embedded store needs nothing. */
async function migrate({ environment }: Engine, configPath: string): Promise<void> {
  const { configuration } = await loadConfiguration(configPath);
  const { settings } = loadSettings(environment, configuration.settings);
  if (settings.databaseUrl === undefined) return;
  await migrateSchema(addressOf(settings.databaseUrl), {
    schema: settings.databaseSchema,
    tables: storeTables(configuration),
    connectTimeoutMs: settings.databaseConnectTimeoutMs,
    program: 'test',
  });
}

async function startTwin(engine: Engine, configPath: string, moment: Moment): Promise<Twin> {
  const { configuration } = await loadConfiguration(configPath);
  const environment = {
    COMITY_PORT: '0',
    COMITY_ADMIN_KEY: adminKey,
    COMITY_DEVELOPMENT: 'on',
    COMITY_RATE_LIMIT_READS: '0',
    COMITY_RATE_LIMIT_WRITES: '0',
    ...engine.environment,
  };
  const { settings } = loadSettings(environment, configuration.settings);
  const seeded = createSeeded(moment.now);
  seeded.set(moment.now, moment.seed);
  const failures: string[] = [];
  const running = await compose({
    providers: new Map(),
    senderSecrets: new Map(),
    module: pathToFileURL(resolve(configPath)).href,
    configuration,
    settings,
    metrics: createMetrics(),
    observe: (fact) => {
      if ('error' in fact) failures.push(`${fact.kind}: ${String(fact.error)}`);
    },
    clock: seeded.clock,
    random: seeded.random,
  });
  const port = Number(new URL(running.url).port);
  return { engine, seeded, running, connection: connectTo(port), port, failures };
}

async function stopTwin(twin: Twin): Promise<void> {
  twin.connection.close();
  await twin.running.stop('the test is over');
}

export function toSend(method: string, path: string, asked: Asked): Sent {
  const headers: [string, string][] = [['Host', host]];
  if (asked.anonymous !== true) headers.push(['Authorization', `Bearer ${adminKey}`]);
  const given = Object.entries(asked.headers ?? {});
  const named = given.some(([name]) => name.toLowerCase() === 'content-type');
  if (asked.json !== undefined && !named) headers.push(['Content-Type', 'application/json']);
  headers.push(...given);
  const body = asked.json === undefined ? asked.body : JSON.stringify(asked.json);
  return { method, path, headers, body: typeof body === 'string' ? Buffer.from(body) : body };
}

/** What differs first, in words; undefined when nothing does. */
function compare(first: Received, second: Received): string | undefined {
  if (first.status !== second.status) return `${show(first)}\n  against\n${show(second)}`;
  const count = Math.max(first.headers.length, second.headers.length);
  for (let at = 0; at < count; at += 1) {
    const [one, other] = [first.headers[at]?.join(': '), second.headers[at]?.join(': ')];
    if (one !== other) return `  ${one}\n  against\n  ${other}`;
  }
  const [one, other] = [first, second].map(({ body }) => withoutRequestIds(body.toString('latin1'))) as [
    string,
    string,
  ];
  if (one === other) return undefined;
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  const from = Math.max(0, at - 80);
  return `  at ${at}: ${cut(one.slice(from))}\n  against\n  at ${at}: ${cut(other.slice(from))}`;
}

/** Ids of requests have random digits of their process and count its requests: what is compared has them empty. */
export function withoutRequestIds(text: string): string {
  return text.replace(/(?<="requestId":")[^"]*/g, '');
}

function show({ status, headers, body }: Received): string {
  const trace = headers.find(([name]) => name === 'Comity-Trace');
  return `  ${status} ${cut(body.toString())}${trace === undefined ? '' : `\n  ${trace[1]}`}`;
}

function cut(text: string): string {
  return text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)} ...` : text;
}

/** What was received, as who asks about it sees it. */
export function answerOf({ status, headers, body }: Received): Answer {
  const text = body.toString('utf8');
  const field = (name: string) => headers.find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1];
  return {
    status,
    text,
    field,
    etag: field('ETag') ?? '',
    location: field('Location') ?? '',
    json: () => JSON.parse(text) as Record<string, unknown>,
    link: (rel) => parseLink(field('Link') ?? '')?.find((link) => link.rel === rel)?.target,
  };
}
