/**
 * Connections of undici that the dialler opens. This file is imported late and not undici itself, whose names a dynamic import does not find
 * in the bundle.
 */
import { Agent, type buildConnector, fetch } from 'undici';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import type { Dial } from './dial.ts';
import { hostnameOf, portOf } from './policy.ts';

export type GuardedAgent = { readonly fetch: typeof fetch; readonly agent: Agent };

const keepAliveMs = 1000;

export function openGuardedAgent(dial: Dial, headBytesMax: number): GuardedAgent {
  const agent = ownEmitter(
    new Agent({
      connect: connectorOf(dial),
      maxHeaderSize: headBytesMax,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      connections: 1,
    }),
    ignoreError,
  );
  return { fetch, agent };
}

export function connectorOf(dial: Dial): buildConnector.connector {
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
