/** Comity inside another program: the same kernel and store, mounted in any Node server instead of listening itself. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { composeMounted } from './compose.ts';
import { resolveConfiguration } from './config/configuration.ts';
import type { ConfigurationDeclaration } from './config/define.ts';
import { loadSettings } from './config/load-settings.ts';
import { readSenderSecrets } from './config/sender-secrets.ts';
import { createLog } from './observe/log.ts';
import { createMetrics } from './observe/metrics.ts';
import { fanOut } from './observe/observation.ts';

export type Comity = {
  /** A node:http request listener: `createServer(comity.handle)`, or `app.use(comity.handle)` in a framework. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** For that server: `server.on('upgrade', comity.upgrade)` enables WebSockets and connect-udp. */
  readonly upgrade: (request: IncomingMessage, stream: Duplex, head: Uint8Array) => void;
  /** For that server: `server.on('connect', comity.connect)` enables the tunnel. */
  readonly connect: (request: IncomingMessage, stream: Duplex, head: Uint8Array) => void;
  /** Set if the administrator key was created at this start, and shown only then. */
  readonly adminKey: string | undefined;
  /** Secrets of senders that were created at this start, by their variable, and shown only then. */
  readonly senderSecrets: ReadonlyMap<string, string>;
  /** Completes requests under way within `drainMs` and closes the store. */
  close(): Promise<void>;
};

export type CreateOptions = {
  /**
   * The module whose default export is the declaration, such as `new URL('./comity.config.ts', import.meta.url)`, which the threads of
   * handlers import. Required if a sender has a handler. Paths in the declaration begin in its folder, without it in the working directory.
   */
  readonly module?: URL;
};

/**
 * Opens the store and creates the handler. Settings come from the declaration and the given environment; `host` and `port` are those of the
 * surrounding server.
 * @throws ConfigurationError with every mistake in the declaration, the settings or the secrets of senders
 */
export async function createComity(
  declaration: ConfigurationDeclaration,
  environment: Readonly<Record<string, string | undefined>> = {},
  { module }: CreateOptions = {},
): Promise<Comity> {
  const configuration = resolveConfiguration(declaration, undefined, module);
  const { settings, providers } = loadSettings(environment, configuration.settings);
  const senderSecrets = readSenderSecrets(environment, configuration.senders);
  const metrics = createMetrics();
  const observe = fanOut(createLog({ level: settings.logLevel }), metrics.observe);
  const { handle, upgrade, connect, adminKey, madeSecrets, stop } = await composeMounted({
    ...{ configuration, settings, providers, senderSecrets, observe, metrics },
    module: module?.href,
  });
  const made = new Map(madeSecrets.map(({ variable, secret }) => [variable, secret]));
  const close = (): Promise<void> => stop('closed by its program');
  return { handle, upgrade, connect, adminKey, senderSecrets: made, close };
}
