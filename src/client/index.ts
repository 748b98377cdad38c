/**
 * The public interface of `comity/client`: a typed client for browsers, Node, Deno, Bun and workers. It needs `fetch` and nothing else, and the
 * code of live lists is loaded when one is opened. Everything not exported here is internal and may change at any time.
 */
import type { ApiOf } from './api.ts';
import type { AuthClient, Client, Routes } from './calls.ts';
import { CollectionCalls, callAction, type JsonQuery, parametersOf, type Shared } from './collection.ts';
import { ComityError } from './error.ts';
import type { Transport } from './line.ts';
import type { Connection } from './live.ts';
import type * as ManyDocuments from './many.ts';
import { type CallOptions, createSend, type Fetching, TaggedAnswers } from './send.ts';
import { type Credential, Session, type SessionTokens } from './session.ts';
import type { UploadOptions } from './upload.ts';

export type { Api, ApiAction, ApiCollection, ApiFile, ApiOf, ClientEvent } from './api.ts';
export type { Client, ClientOf, CollectionClient, Me, Moved } from './calls.ts';
export { ComityError, ConflictError, type ErrorCode, type MemberError } from './error.ts';
export type { LiveList, LiveState } from './live.ts';
export type { BulkOptions, BulkResult, ImportOptions, ImportResult, ManyUpdated } from './many.ts';
export type { CallOptions } from './send.ts';
export type { SessionStorage, SessionTokens } from './session.ts';
export type { FieldUploadOptions, UploadOptions } from './upload.ts';

/** The arguments of `createClient`. @template A an `Api` */
export type ClientDeclaration<A> = Fetching &
  Credential & {
    /**
     * How live lists and `events.follow` hear of events. Default: a WebSocket on a page, because browsers open six connections at most to a
     * server without HTTP/2, otherwise an event stream; what does not come through is replaced by the next: a stream, and polling.
     */
    readonly transport?: Transport;
  } & (keyof Routes<A> extends never
    ? { readonly routes?: undefined }
    : {
        /** The methods and paths of actions that are not `POST /NAME`, as the `Api` has them: types are not there at run time. */
        readonly routes: Routes<A>;
      });

const slashes = /\/+$/;

/**
 * Creates a client: `createClient<Api>({ baseUrl })` with the types that `comity types` prints, or `createClient<typeof config>({ baseUrl })`.
 * It sends nothing before its first call.
 */
export function createClient<C>(declaration: ClientDeclaration<ApiOf<C>>): Client<C> {
  const { baseUrl: given, routes = {}, transport } = declaration;
  const baseUrl = given.replace(slashes, '');
  const tags = new TaggedAnswers();
  const session = new Session(
    baseUrl,
    declaration,
    async (refreshToken, key) => {
      const { body } = await send('POST', '/auth/refresh', {
        body: { refreshToken },
        headers: { 'Idempotency-Key': `"${key}"` },
        isLogin: true,
      });
      return body as SessionTokens;
    },
    () => tags.clear(),
  );
  const send = createSend({ ...declaration, baseUrl }, session, tags);
  const shared: Shared = { send, locations: new Map(), uploadMethods: new Map() };
  const load = () => import('./live.ts');
  let connecting: Promise<Connection> | undefined;
  let isClosed = false;
  /** One for all live lists. */
  const connect = async (): Promise<Connection> => {
    connecting ??= load().then(({ connect: open }) => open(parts));
    return connecting;
  };
  const parts = { ...declaration, baseUrl, transport, session, send };
  const actionsAt = (above: string, named: Readonly<Record<string, string>> = {}) =>
    proxyOf(
      {},
      (name) =>
        (...args: readonly unknown[]) =>
          callAction(send, above, named[name] ?? `POST /${name}`, args),
    );
  const routed = routes as Readonly<Record<string, Readonly<Record<string, string>>>>;
  const collections = new Map<string, object>();
  const collection = (name: string): object => {
    let calls = collections.get(name);
    if (calls === undefined) {
      const path = `/${name}`;
      const plain = new CollectionCalls(shared, path);
      const live = async (query: JsonQuery = {}, options = {}) => {
        if (isClosed) throw new TypeError('the client is closed');
        const [{ openLiveList }, connection] = await Promise.all([load(), connect()]);
        return openLiveList({ connection, calls: plain, name }, query, options);
      };
      calls = Object.assign(plain, manyOf(send, path), { live, actions: actionsAt(path, routed[name]) });
      collections.set(name, calls);
    }
    return calls;
  };
  const fixed = {
    auth: createAuth(send, session),
    events: createEvents(send, async function* (query, options) {
      yield* (await import('./follow.ts')).followEvents(parts, query, options);
    }),
    actions: actionsAt('', routed.actions),
    collection,
    request: async (method: string, path: string, options: CallOptions & { readonly body?: unknown } = {}) =>
      (await send(method, path, options)).body,
    upload: (file: Blob, options: UploadOptions = {}) => sendUpload(send, file, options),
    isError: (error: unknown) => error instanceof ComityError,
    close: () => {
      isClosed = true;
      void connecting?.then((connection) => connection.close());
    },
  };
  return proxyOf(fixed, collection) as unknown as Client<C>;
}

/** An object with further members, made when they are asked for. It is no promise, and JSON of it is that of the object. */
function proxyOf<T extends object>(object: T, member: (name: string) => unknown): T {
  return new Proxy(object, {
    get: (target, name) =>
      typeof name === 'symbol' || name in target || name === 'then' || name === 'toJSON'
        ? Reflect.get(target, name)
        : member(name),
  });
}

type SendOf = ReturnType<typeof createSend>;
type ManyCall = (send: SendOf, path: string, ...args: readonly never[]) => Promise<unknown>;

/** Calls whose code is loaded by the first one. */
function manyOf(send: SendOf, path: string) {
  const call =
    (name: keyof typeof ManyDocuments) =>
    async (...args: readonly never[]) =>
      ((await import('./many.ts'))[name] as ManyCall)(send, path, ...args);
  return { updateMany: call('updateMany'), bulk: call('bulk'), import: call('importContent') };
}

async function sendUpload(send: SendOf, file: Blob, options: UploadOptions) {
  const { sendChunks } = await import('./upload-chunks.ts');
  return sendChunks(send, file, options, { address: '/uploads', take: (upload) => ({ upload }) });
}

function createAuth(send: SendOf, session: Session): AuthClient {
  const open = (path: string) => async (content: object, options?: CallOptions) => {
    const body = session.sendsCookies ? { ...content, cookie: true } : content;
    const sent = { ...options, body, isLogin: true, once: true };
    const tokens = (await send('POST', `/auth/${path}`, sent)).body as SessionTokens;
    // Without one where an address must be verified first.
    if (tokens.refreshToken !== undefined) await session.open(tokens);
    return tokens;
  };
  const request = (path: string) => async (content: object, options?: CallOptions) =>
    (await send('POST', `/auth/${path}`, { ...options, body: content, isLogin: true })).body as never;
  return {
    login: open('login'),
    secondFactor: open('login/second-factor'),
    requestCode: request('code'),
    requestLink: request('link'),
    loginByCode: open('code/confirm'),
    invite: async (content, options) =>
      (await send('POST', '/auth/invite', { ...options, body: content })).body as never,
    acceptInvitation: open('invitation/accept'),
    register: open('register'),
    refresh: () => session.renew(),
    async logout({ everywhere, ...options } = {}) {
      const body = everywhere === true ? { everywhere } : {};
      try {
        // A session that has ended is what was asked for.
        await send('POST', '/auth/logout', { ...options, body, asksWho: true, accepts: [401] });
      } finally {
        await session.close();
      }
    },
    me: async (options) => (await send('GET', '/auth/me', { ...options, asksWho: true })).body as never,
  };
}

type Follow = (query: EventQuery, options: CallOptions) => AsyncGenerator<never>;
type EventQuery = JsonQuery & { readonly types?: readonly string[]; readonly after?: string };

function createEvents(send: SendOf, follow: Follow) {
  const read = async (query: JsonQuery, options: CallOptions) =>
    (await send('GET', `/events?${parametersOf(query)}`, options)).body;
  return {
    list: (query: JsonQuery = {}, options: CallOptions = {}) => read(query, options),
    feed: ({ types, wait, ...query }: EventQuery & { readonly wait?: number }, options: CallOptions = {}) => {
      const held = wait === undefined ? {} : { Prefer: `wait=${wait}` };
      const filter = types === undefined ? {} : { type: { in: types } };
      return read({ ...query, filter }, { ...options, headers: { ...held, ...options.headers } });
    },
    follow: (query: EventQuery = {}, options: CallOptions = {}) => follow(query, options),
    post: async (
      type: string,
      object: unknown,
      { id, ...options }: CallOptions & { readonly id?: string } = {},
    ) =>
      (await send('POST', '/events', { ...options, body: { type, data: { object }, ...(id && { id }) } }))
        .body,
  };
}
