/**
 * Fetch through the guard (§6.8), for documents that a configuration names and others publish, such as the keys of a sender. Rare requests:
 * no connection is kept for longer than a moment. What it answers is bounded by who reads it.
 */
import { Agent, fetch } from 'undici';
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

type AgentOptions = NonNullable<ConstructorParameters<typeof Agent>[0]>;
type Connect = Extract<AgentOptions['connect'], (...given: never[]) => unknown>;

const keepAliveMs = 1000;

export function createGuardedFetch(options: {
  readonly dial: Dial;
  readonly egressHeadBytesMax: number;
}): GuardedFetch {
  const connect: Connect = ({ hostname, port, protocol }, callback) => {
    const origin = new URL(
      `${protocol}//${hostname}:${port === '' || port === null ? (protocol === 'https:' ? 443 : 80) : port}`,
    );
    const tls = protocol === 'https:' ? { tls: {} } : {};
    options.dial({ hostname: hostnameOf(origin), port: portOf(origin), ...tls }).then(
      ({ socket }) => callback(null, socket),
      (error: unknown) =>
        callback(error instanceof Error ? error : new Error('The dial was given up', { cause: error }), null),
    );
  };
  const agent = new Agent({
    connect,
    maxHeaderSize: options.egressHeadBytesMax,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
    connections: 1,
  });
  return {
    fetch: (url, init) => fetch(url, { ...init, dispatcher: agent }) as unknown as Promise<Response>,
    close: () => agent.destroy(),
  };
}
