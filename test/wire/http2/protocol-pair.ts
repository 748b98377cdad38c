/**
 * The program twice in this process, with the same clock and the same randomness, asked once over HTTP/1.1 and once over HTTP/2. The
 * answers must be the same: status, every header field in its order, and every octet of the content. What differs by
 * the protocols themselves is left out: fields of the connection, and the case of names.
 */
import assert from 'node:assert/strict';
import { METHODS } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { loadConfiguration } from '../../../src/config/load-configuration.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { compose, type Running } from '../../../src/running.ts';
import { type Connection, connectTo, type Received, type Sent } from '../../full/stores/exchange.ts';
import {
  answerOf,
  differencesMax,
  firstTime,
  type Pair,
  stepsMs,
  toSend,
  withoutRequestIds,
} from '../../full/stores/pair.ts';
import { createSeeded, type Seeded } from '../../full/stores/seeded.ts';
import { adminKey } from '../../harness/exchange.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const host = 'comity.test';
/** Fields that HTTP/2 has not (RFC 9113 §8.2.2). */
const ofConnections: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'transfer-encoding']);

type Twin = { readonly seeded: Seeded; readonly running: Running; readonly connection: Connection };

export type ProtocolPair = Pick<Pair, 'ask' | 'settle' | 'requests' | 'stop'>;

export async function startProtocolPair(configPath: string): Promise<ProtocolPair> {
  const folder = temporaryFolder();
  const twins = [
    await startTwin(configPath, join(folder, 'one'), connectTo),
    await startTwin(configPath, join(folder, 'two'), connectOverHttp2),
  ];
  let requests = 0;
  let differences: string[] = [];
  return {
    get requests() {
      return requests;
    },
    async ask(method, path, status, asked = {}) {
      requests += 1;
      const sent = toSend(method, path, asked);
      const now = firstTime + requests * 1000 + (stepsMs[requests % stepsMs.length] ?? 0);
      const received: Received[] = [];
      for (const { seeded, connection } of twins) {
        seeded.set(now, requests + 1);
        received.push(await connection.exchange(sent));
      }
      // A method that node:http does not know never gets past its parser: the refusal is written by hand there.
      const [one, other] = received.map(METHODS.includes(method) ? shown : shownBriefly);
      if (one !== other) differences.push(`${method} ${path}\n${one}\n  against\n${other}`);
      const first = received[0];
      if (first === undefined) throw new Error('nothing was answered');
      if (status !== 'any' && first.status !== status) {
        differences.push(`${method} ${path}: ${status} was to come, not ${first.status}`);
      }
      return answerOf(first);
    },
    settle() {
      const found = differences;
      differences = [];
      assert.equal(found.length, 0, `\n${found.slice(0, differencesMax).join('\n\n')}`);
    },
    async stop() {
      for (const { connection, running } of twins) {
        connection.close();
        await running.stop('the test is over');
      }
    },
  };
}

async function startTwin(
  configPath: string,
  data: string,
  connect: (port: number) => Connection,
): Promise<Twin> {
  const { configuration } = await loadConfiguration(configPath);
  const environment = {
    ...{ COMITY_PORT: '0', COMITY_ADMIN_KEY: adminKey, COMITY_DEVELOPMENT: 'on', COMITY_DATA: data },
    ...{ COMITY_RATE_LIMIT_READS: '0', COMITY_RATE_LIMIT_WRITES: '0' },
  };
  const { settings } = loadSettings(environment, configuration.settings);
  const seeded = createSeeded(firstTime);
  seeded.set(firstTime, 1);
  const running = await compose({
    ...{ providers: new Map(), senderSecrets: new Map(), configuration, settings },
    module: pathToFileURL(resolve(configPath)).href,
    metrics: createMetrics(),
    observe: () => undefined,
    clock: seeded.clock,
    random: seeded.random,
  });
  return { seeded, running, connection: connect(Number(new URL(running.url).port)) };
}

/** As `connectTo`, over HTTP/2 with prior knowledge. */
function connectOverHttp2(port: number): Connection {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  return {
    close: () => session.close(),
    exchange: (sent) => exchange(session, sent),
  };
}

function exchange(session: ClientHttp2Session, { method, path, headers, body }: Sent): Promise<Received> {
  const fields = [':method', method, ':path', path, ':scheme', 'http', ':authority', host];
  for (const [name, value] of headers) {
    if (name !== 'Host') fields.push(name.toLowerCase(), value);
  }
  if (body !== undefined) fields.push('content-length', String(body.byteLength));
  return new Promise((resolveReceived, reject) => {
    // As the client of node:http has it, a QUERY without content says that it has some, of no length.
    const ends = body === undefined && method !== 'QUERY';
    const stream = session.request(fields, { endStream: ends });
    const chunks: Buffer[] = [];
    let raw: readonly string[] = [];
    stream.on('response', (_fields, _flags, rawFields: readonly string[]) => {
      raw = rawFields;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('close', () => {
      const pairs: [string, string][] = [];
      for (let at = 0; at + 1 < raw.length; at += 2) pairs.push([raw[at] ?? '', raw[at + 1] ?? '']);
      const status = Number(pairs.shift()?.[1]);
      resolveReceived({ status, headers: pairs, body: Buffer.concat(chunks) });
    });
    if (!ends) stream.end(body);
  });
}

/** All that is compared, as text. */
function shown({ status, headers, body }: Received): string {
  const fields = headers
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !ofConnections.has(name))
    .map(([name, value]) => `${name}: ${value}`);
  return [`${status}`, ...fields, withoutRequestIds(body.toString('latin1'))].join('\n');
}

function shownBriefly({ status, body }: Received): string {
  return `${status}\n${body.toString('latin1')}`;
}
