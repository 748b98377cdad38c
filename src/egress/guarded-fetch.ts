/**
 * Fetch through the egress guard (§6.8), for published documents that a configuration names, such as the keys of a sender. Connections are
 * kept only for a moment, because requests are rare. The caller limits the response. The HTTP package is loaded with the first request, as
 * for exchanges (late-exchanges.ts).
 */
import type { Agent, buildConnector } from 'undici';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import type { Dial } from './dial.ts';
import { hostnameOf, portOf } from './policy.ts';

export type GuardedFetch = {
  readonly fetch: (
    url: string,
    init: {
      readonly headers: Readonly<Record<string, string>>;
      readonly redirect: 'manual';
      readonly signal: AbortSignal;
    },
  ) => Promise<Response>;
  close(): Promise<void>;
};

export type GuardedFetchOptions = { readonly dial: Dial; readonly egressHeadBytesMax: number };

const keepAliveMs = 1000;

export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  let loading: Promise<Loaded> | undefined;
  return {
    async fetch(url, init) {
      loading ??= load(options);
      const { fetch, agent } = await loading;
      return (await fetch(url, { ...init, dispatcher: agent })) as unknown as Response;
    },
    async close() {
      await (await loading)?.agent.destroy();
    },
  };
}

type Loaded = { readonly fetch: typeof import('undici')['fetch']; readonly agent: Agent };

async function load({ dial, egressHeadBytesMax }: GuardedFetchOptions): Promise<Loaded> {
  const { Agent, fetch } = await import('undici');
  const agent = ownEmitter(
    new Agent({
      connect: connectorOf(dial),
      maxHeaderSize: egressHeadBytesMax,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      connections: 1,
    }),
    ignoreError,
  );
  return { fetch, agent };
}

function connectorOf(dial: Dial): buildConnector.connector {
  return ({ hostname, port, protocol }, callback) => {
    const origin = new URL(`${protocol}//${hostname}${port === '' ? '' : `:${port}`}`);
    const tls = protocol === 'https:' ? { tls: {} } : {};
    dial({ hostname: hostnameOf(origin), port: portOf(origin), ...tls }).then(
      ({ socket }) => callback(null, socket),
      (error: unknown) =>
        callback(
          error instanceof Error
            ? error
            : new Error('The connection attempt was abandoned', { cause: error }),
          null,
        ),
    );
  };
}
