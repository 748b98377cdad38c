/**
 * Fetch through the guard (§6.8), for documents that a configuration names and others publish, such as the keys of a sender. Rare requests:
 * no connection is kept for longer than a moment. What it answers is bounded by who reads it. The package that speaks HTTP is loaded with the
 * first request, as for exchanges (late-exchanges.ts): most programs never make one.
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
        callback(error instanceof Error ? error : new Error('The dial was given up', { cause: error }), null),
    );
  };
}
