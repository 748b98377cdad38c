/**
 * A receiver of webhooks for trying things: verifies what comes, counts it, knows what has come before, and misbehaves where it is
 * told to (faults.ts).
 *
 * It is an example of the rules of a good receiver as well: raw octets are verified, a duplicate is answered like the first, and a
 * wrong signature is 400. It keeps everything in memory; a real one stores the id before it answers.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listening, urlOf, watchConnections } from './connections.ts';
import { type Asked, type Behaviour, behaviours, earlyBehaviours } from './faults.ts';
import { type Scheme, schemeOf, type Verdict, verify } from './verify.ts';

export type Received = {
  /** Without the query. */
  readonly path: string;
  /** What makes a duplicate known: of the event, or of the delivery where the scheme is `plain`; null where there is none. */
  readonly id: string | null;
  readonly type: string | null;
  readonly scheme: Scheme | null;
  readonly verdict: Verdict;
  /** Whether the id had come to this path before. */
  readonly duplicate: boolean;
  /** null: no answer was given. */
  readonly status: number | null;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** When its header section was there, in milliseconds since the epoch. */
  readonly at: number;
};

export type ReceiverOptions = {
  /** 127.0.0.1 unless given. */
  readonly host?: string;
  /** 0, the default, takes a free one. */
  readonly port?: number;
  /** Accepts only this scheme; else each that it recognises. */
  readonly scheme?: Scheme;
  readonly secrets?: readonly string[];
  /** What it does on paths that name no behaviour; `/ok` unless given. Written like such a path. */
  readonly behaviour?: string;
  /** Does that to every nth request, and is good to the others. 1 unless given. */
  readonly every?: number;
  /** Waits so long before everything. */
  readonly delayMs?: number;
  readonly onReceived?: (received: Received) => void;
};

export type Receiver = {
  /** `http://127.0.0.1:4100` */
  readonly url: string;
  /** What came, the oldest first; of very much only the last `receivedMax`. */
  readonly received: readonly Received[];
  /** Verifies with this secret as well. Before the first one nothing is verified. */
  trust(secret: string): void;
  /** Resolves when it holds, at once or after the next that comes. */
  until(holds: (received: readonly Received[]) => boolean): Promise<void>;
  /** Resolves when nobody is connected any more. */
  idle(): Promise<void>;
  /** Ends whatever it is in the middle of. */
  close(): Promise<void>;
};

const receivedMax = 100_000;
const contentBytesMax = 32 * 1024 ** 2;

export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const secrets = [...(options.secrets ?? [])];
  const received: Received[] = [];
  const times = new Map<string, number>();
  const waiting = new Set<() => void>();
  const { later, stop } = startTimers();
  let requests = 0;

  const server = createServer((request, response) => {
    // A sender that goes away in the middle is part of the game.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    const { pathname } = new URL(request.url ?? '/', 'http://receiver');
    if (pathname === '/log' && request.method !== 'POST') sendLog(request, response, received);
    else if (options.delayMs === undefined) void receive(request, response, pathname);
    else later(options.delayMs, () => void receive(request, response, pathname));
  });

  async function receive(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const at = Date.now();
    requests += 1;
    const bad = requests % (options.every ?? 1) === 0 ? options.behaviour : undefined;
    const [name, numbers] = behaviourOf(path) ?? behaviourOf(bad ?? 'ok') ?? ['ok', []];
    const early = earlyBehaviours.get(name);
    const asked = { request, response, numbers, times: 1, later };
    const earlyStatus = early?.(asked);
    const body = await read(request);
    if (body === undefined) return;
    const facts = schemeOf(request.headers, body);
    const key = `${path} ${facts.id}`;
    const before = facts.id === null ? 0 : (times.get(key) ?? 0);
    if (facts.id !== null) times.set(key, before + 1);
    const verdict = await verify(request.headers, body, { scheme: options.scheme, secrets });
    const act = verdict === 'verified' || verdict === 'unchecked' ? behaviours.get(name) : refuse;
    const status = earlyStatus ?? act?.({ ...asked, times: before + 1 }) ?? null;
    const { headers } = request;
    const text = body.toString('utf8');
    note({ path, ...facts, verdict, duplicate: before > 0, status, headers, body: text, at });
  }

  function note(one: Received): void {
    received.push(one);
    if (received.length > receivedMax) received.shift();
    options.onReceived?.(one);
    for (const look of waiting) look();
  }

  const idle = watchConnections(server);
  await listening(server, options);
  return {
    url: urlOf(server.address() as AddressInfo),
    received,
    trust: (secret) => void secrets.push(secret),
    until: (holds) => until(() => holds(received), waiting),
    idle,
    close: () =>
      new Promise((resolve) => {
        stop();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Looks now, and whenever what is in `waiting` is called. */
function until(holds: () => boolean, waiting: Set<() => void>): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (!holds()) return;
      waiting.delete(look);
      resolve();
    };
    waiting.add(look);
    look();
  });
}

/** Timers that end with the receiver. */
function startTimers(): { readonly later: Asked['later']; readonly stop: () => void } {
  const timers = new Set<NodeJS.Timeout>();
  return {
    later: (ms, act) => {
      const timer = setTimeout(() => {
        timers.delete(timer);
        act();
      }, ms);
      timers.add(timer);
    },
    stop: () => {
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

const refuse: Behaviour = ({ response }: Asked) => {
  response.writeHead(400).end('the signature is not good\n');
  return 400;
};

/** `/status/503`, or `status/503`. */
function behaviourOf(path: string): [name: string, numbers: readonly number[]] | undefined {
  const [name = '', ...rest] = path.split('/').filter((part) => part !== '');
  if (!behaviours.has(name) && !earlyBehaviours.has(name)) return undefined;
  return [name, rest.map(Number).filter((value) => Number.isFinite(value))];
}

/** The octets as they came: a text would not be what was signed. Undefined: the sender went away, or sends without end. */
async function read(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > contentBytesMax) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
}

function sendLog({ method }: IncomingMessage, response: ServerResponse, received: readonly Received[]): void {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.end(method === 'HEAD' ? undefined : JSON.stringify(received));
}
