/** A proxy on a free port whose foreign requests go through the real admission, guard and dialer, and destinations made for one test. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createNetServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { createDialer, type Dial } from '../../../src/egress/dial.ts';
import { createEgressPolicy } from '../../../src/egress/policy.ts';
import type { Request } from '../../../src/http/message.ts';
import { readRequestFields } from '../../../src/http/request-fields.ts';
import { authenticated } from '../../../src/model/principal.ts';
import type { Observation } from '../../../src/observe/observation.ts';
import { createOpenConnections } from '../../../src/observe/open-connections.ts';
import { type AdmissionDesk, type AdmissionOptions, createAdmission } from '../../../src/tunnel/admission.ts';
import type { Carriage } from '../../../src/tunnel/carry.ts';
import type { ForwardCall } from '../../../src/tunnel/proxy-call.ts';
import { createForward } from '../../../src/tunnel/tunnel.ts';
import { listen } from '../../harness/listening.ts';
import { knownAs } from '../../resources/known.ts';
import { openRaw, type RawClient } from '../../wire/server/raw-client.ts';

export const credential = 'Proxy-Authorization: Bearer good\r\n';

export type Scene = {
  readonly port: number;
  readonly desk: AdmissionDesk;
  readonly observed: Observation[];
  /** Ends the credential of everybody. */
  readonly revoke: () => void;
  open(): Promise<RawClient>;
  /** `host:port` of a destination that is a server of node:http. */
  destination(listener: RequestListener): Promise<string>;
  /** The same of one that does with its socket what it wants. */
  rawDestination(onSocket: (socket: Socket) => void): Promise<string>;
  /** Waits for the fact. */
  fact<K extends Observation['kind']>(kind: K): Promise<Observation & { readonly kind: K }>;
};

export type SceneOptions = {
  readonly settings?: Partial<AdmissionOptions['settings']>;
  readonly limits?: Partial<Carriage['limits']>;
  readonly hostsOf?: AdmissionOptions['hostsOf'];
  readonly scopes?: readonly ['tunnel'] | readonly [];
  readonly egressAllow?: string;
};

export async function stage(test: TestContext, options: SceneOptions = {}): Promise<Scene> {
  const { observed, observe, fact } = watchFacts();
  const ends = new Set<() => void>();
  const own: string[] = [];
  const desk = admissionOf(options, observe, ends);
  const { isForeign, forward } = createForward(desk, dialerOf(options), {
    ownOrigins: () => own,
    limits: { tunnelAnswerMs: 5000, tunnelIdleMs: 5000, ...options.limits },
  });
  const serve = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const request = requestOf(incoming);
    if (isForeign(request)) answerWith(forward, request, incoming, outgoing);
    else outgoing.end(`local ${request.target}`);
  };
  const proxy = createServer({ requireHostHeader: false }, serve);
  proxy.on('checkContinue', serve);
  proxy.on('checkExpectation', serve);
  const { port } = await listen(proxy, test);
  own.push(`127.0.0.1:${port}`, 'api.shop.example:443');
  return {
    ...{ port, desk, observed, fact },
    revoke: () => {
      for (const end of ends) end();
    },
    open: async () => {
      const client = await openRaw(port);
      test.after(() => client.destroy());
      return client;
    },
    destination: async (listener) => new URL((await listen(createServer(listener), test)).url).host,
    rawDestination: async (onSocket) => new URL((await listen(createNetServer(onSocket), test)).url).host,
  };
}

function watchFacts(): Pick<Scene, 'observed' | 'fact'> & { readonly observe: AdmissionOptions['observe'] } {
  const observed: Observation[] = [];
  const waiting = new Set<() => void>();
  return {
    observed,
    observe: (fact) => {
      observed.push(fact);
      for (const look of waiting) look();
    },
    fact: (kind) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = observed.find((fact) => fact.kind === kind);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found as Observation & { readonly kind: typeof kind });
        };
        waiting.add(look);
        look();
      }),
  };
}

function admissionOf(
  { settings, scopes = ['tunnel'], hostsOf = () => [] }: SceneOptions,
  observe: AdmissionOptions['observe'],
  ends: Set<() => void>,
): AdmissionDesk {
  const known = {
    ...knownAs(authenticated({ id: 'usr_a', scopes })),
    onEnd: (listener: () => void) => {
      ends.add(listener);
      return () => ends.delete(listener);
    },
  };
  return createAdmission({
    connections: createOpenConnections(Date.now),
    settings: {
      ...{ tunnelPorts: '1-65535', tunnelsMax: 100, tunnelsPerPrincipalMax: 50, tunnelBytesPerDayMax: 0 },
      ...settings,
    },
    authenticate: async (text) => {
      if (text === undefined) return { principal: { kind: 'anonymous' } };
      return text === 'Bearer good' ? known : { problem: 'invalid_token' };
    },
    addressOf: ({ peer }) => peer,
    ...{ hostsOf, observe, clock: Date.now },
  });
}

/** Names below `.example` are on this machine; all others are nowhere. */
function dialerOf({ egressAllow = '127.0.0.0/8' }: SceneOptions): Dial {
  const rules = { egressAllow, egressPorts: '', everyPort: true, ownListeners: () => [] };
  const lookup = async (name: string) => {
    if (name.endsWith('.example')) return ['127.0.0.1'];
    throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
  };
  const policy = createEgressPolicy(rules);
  return createDialer({ policy, egressDnsMs: 2000, egressConnectMs: 2000, lookup });
}

export function requestOf(incoming: IncomingMessage): Request {
  return {
    ...{ method: incoming.method ?? '', target: incoming.url ?? '', version: incoming.httpVersion },
    ...{ fields: readRequestFields(incoming.rawHeaders), rawFields: incoming.rawHeaders },
    readContent: () => Promise.reject(new Error('nobody reads the content of a forwarded request')),
    ...{ peer: '127.0.0.1', id: 'req_1' },
  };
}

function answerWith(
  forward: (call: ForwardCall) => Promise<unknown>,
  request: Request,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): void {
  const gone = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort();
  });
  const { contentLength, transferEncoding } = request.fields;
  const hasContent = transferEncoding !== undefined || Number(contentLength ?? 0) > 0;
  const call: ForwardCall = {
    ...{ request, signal: gone.signal, content: hasContent ? incoming : Readable.from([]) },
    answer: (status, fields) =>
      outgoing.writeHead(status, incoming.complete ? [...fields] : [...fields, 'Connection', 'close']),
    interim: (status, fields) => outgoing.writeInformation(status, [...fields]),
  };
  void forward(call).then((refused) => {
    if (refused === undefined) return;
    const { status, fields, content, close } = refused as {
      status: number;
      fields: string[];
      content: string;
      close?: boolean;
    };
    outgoing.writeHead(status, close === true ? [...fields, 'Connection', 'close'] : fields);
    outgoing.end(content);
  });
}
