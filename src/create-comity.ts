/**
 * Comity inside another program: the same kernel and store, mounted in any Node server instead of listening itself.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { composeMounted } from './compose.ts';
import { resolveConfiguration } from './config/configuration.ts';
import type { ConfigurationDeclaration } from './config/define.ts';
import { loadSettings } from './config/load-settings.ts';
import { readSenderSecrets } from './config/sender-secrets.ts';
import { fanOut } from './observe/fan-out.ts';
import { createLog } from './observe/log.ts';
import { createMetrics } from './observe/metrics.ts';

export type Comity = {
  /** A node:http request listener: `createServer(comity.handle)`, or `app.use(comity.handle)` in a framework. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Of that server, `server.on('upgrade', comity.upgrade)`: WebSockets and connect-udp. Without it there are none. */
  readonly upgrade: (request: IncomingMessage, stream: Duplex, head: Uint8Array) => void;
  /** Of that server, `server.on('connect', comity.connect)`: the tunnel. Without it there is none. */
  readonly connect: (request: IncomingMessage, stream: Duplex, head: Uint8Array) => void;
  /** Set when the administrator key was made at this start: the only time anyone sees it. */
  readonly adminKey: string | undefined;
  /** Secrets of senders that were made at this start, by the variable that sets them: the only time anyone sees them. */
  readonly senderSecrets: ReadonlyMap<string, string>;
  /** Finishes requests under way within `drainMs` and closes the store. */
  close(): Promise<void>;
};

export type CreateOptions = {
  /**
   * The module whose default export is the declaration, such as `new URL('./comity.config.ts', import.meta.url)`: the threads that handlers of
   * received webhooks run on import it. Needed where a sender has a handler.
   */
  readonly module?: URL;
};

/**
 * Opens the store and makes the handler. Settings come from the declaration and from the environment given, if any;
 * `host` and `port` are those of the server it is mounted in.
 * @throws ConfigurationError with every mistake of the declaration, of its settings or of the secrets of its senders
 */
export async function createComity(
  declaration: ConfigurationDeclaration,
  environment: Readonly<Record<string, string | undefined>> = {},
  { module }: CreateOptions = {},
): Promise<Comity> {
  const configuration = resolveConfiguration(declaration);
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
