/** A Comity inside another program, as its types have it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Resources } from './model/logic/collection-calls.ts';

/** @template R the calls on its collections */
export type Comity<R = Resources> = {
  /** Answers a request of the Web's `fetch` without a socket; content streams in both directions. */
  readonly fetch: (request: Request, options?: FetchOptions) => Promise<Response>;
  /**
   * The collections, called as an administrator; `resources.as(principal)` calls them with the rights of that principal, as a request of it
   * would. Each call is a unit of its own.
   */
  readonly resources: ResourcesAs<R>;
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

export type FetchOptions = {
  /** The address that limits count the caller by, and that the log names. Default `127.0.0.1`. */
  readonly address?: string;
  /** Whom the request is made for, in place of a credential; null: a caller without one. */
  readonly as?: PrincipalDeclaration;
};

export type ResourcesAs<R> = R & { as(principal: PrincipalDeclaration): R };

/** Whom calls are made for; an account fits as it is. Null: a caller without a credential. */
export type PrincipalDeclaration = {
  /** The owner of what it creates. */
  readonly id: string;
  readonly roles?: readonly string[];
  /** Default: `read` and `write`. */
  readonly scopes?: readonly string[];
  readonly tenant?: string | null | undefined;
  /** Those of `accounts.fields`. Default: the members of these names, as an account has them. */
  readonly fields?: Readonly<Record<string, unknown>>;
} | null;
