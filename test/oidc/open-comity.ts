/**
 * The sign-in by a provider as a program would serve it: the two resources with real sessions and a real store, over real sockets. Who
 * calls is known by the session cookie, by `Bearer` and an access token, or by `Bearer key` as somebody without a session.
 */
import { randomBytes, randomInt } from 'node:crypto';
import type { TestContext } from 'node:test';
import { createFindUser } from '../../src/auth/accounts/find-user.ts';
import { createAudit } from '../../src/auth/audit.ts';
import { createCrossSiteCheck } from '../../src/auth/cross-site.ts';
import { createOAuth } from '../../src/auth/oauth/oauth.ts';
import { sessionCookieName } from '../../src/auth/sessions/cookie.ts';
import { createSessions } from '../../src/auth/sessions/create-sessions.ts';
import type { Sessions } from '../../src/auth/sessions/sessions.ts';
import { createAccessTokens } from '../../src/auth/tokens/access-token.ts';
import { createSigningKeys } from '../../src/auth/tokens/signing-keys.ts';
import type { Verdict } from '../../src/auth/verdict.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import type { OAuthProvider } from '../../src/config/oauth-providers.ts';
import type { Settings } from '../../src/config/settings.ts';
import type { Request } from '../../src/http/message.ts';
import { readCookie } from '../../src/http/syntax/cookie.ts';
import { createHttpDateCache } from '../../src/http/syntax/http-date.ts';
import { createIdSource } from '../../src/model/id.ts';
import { anonymous, authenticated } from '../../src/model/principal.ts';
import type { Observation, Observe } from '../../src/observe/observation.ts';
import { oauthResources } from '../../src/resources/accounts/oauth.ts';
import { corsPolicy } from '../../src/resources/answer/cors.ts';
import { createIdempotency } from '../../src/resources/idempotency.ts';
import { createOperations } from '../../src/resources/operations/operations.ts';
import { principalOf } from '../../src/resources/operations/stored-request.ts';
import { createRateLimiter } from '../../src/resources/rate-limit/rate-limiter.ts';
import type { Identified } from '../../src/resources/resource.ts';
import type { Room } from '../../src/resources/room.ts';
import { createRouter } from '../../src/resources/router.ts';
import { Walk } from '../../src/resources/walk.ts';
import { createListener } from '../../src/server/listener.ts';
import type { Store } from '../../src/store/store.ts';
import { knownAs } from '../resources/known.ts';

export type OpenedComity = {
  readonly origin: string;
  /** `{origin}/api/v1/auth/oauth/{name}` */
  startOf(name: string): string;
  callbackOf(name: string): string;
  readonly store: Store;
  readonly sessions: Sessions;
  readonly observations: Observation[];
  moveClock(seconds: number): void;
};

export type ComityOptions = {
  readonly store: Store;
  readonly providers: readonly OAuthProvider[];
  readonly settings?: Partial<Settings>;
  readonly allowedOrigins?: readonly string[];
};

export async function openComity(context: TestContext, options: ComityOptions): Promise<OpenedComity> {
  const { store } = options;
  const observations: Observation[] = [];
  let ahead = 0;
  let origin = '';
  const parts = await partsOf(options, {
    observe: (observation) => observations.push(observation),
    clock: () => Date.now() + ahead,
    origin: () => origin,
  });
  const room = roomOf(parts);
  const listener = createListener({
    handler: (request) => new Walk(room, request).run(),
    observe: parts.observe,
    apiVersion: '1',
  });
  const { port } = await listener.listen('127.0.0.1', 0);
  origin = `http://127.0.0.1:${port}`;
  context.after(async () => {
    await listener.drain(0);
    await parts.keys.close();
    await parts.sessions.close();
    await parts.audit.close();
  });
  return {
    origin,
    startOf: (name) => `${origin}/api/v1/auth/oauth/${name}`,
    callbackOf: (name) => `${origin}/api/v1/auth/oauth/${name}/callback`,
    store,
    sessions: parts.sessions,
    observations,
    moveClock: (seconds) => {
      ahead += seconds * 1000;
    },
  };
}

type Surroundings = {
  readonly observe: Observe;
  readonly clock: () => number;
  readonly origin: () => string;
};

type Parts = Awaited<ReturnType<typeof partsOf>>;

async function partsOf(options: ComityOptions, surroundings: Surroundings) {
  const { store, providers } = options;
  const { clock, origin } = surroundings;
  const settings: Settings = {
    ...loadSettings({}, {}, {}).settings,
    issuerTimeoutMs: 2000,
    ...options.settings,
  };
  const newId = createIdSource(clock, () => randomInt(32));
  const audit = createAudit({ ...surroundings, store, newId, waitingMax: 100 });
  const made = { ...settings, ...surroundings, store, newId, audit, random: randomBytes };
  const keys = await createSigningKeys(made);
  const sessions = createSessions({ ...made, tokens: createAccessTokens({ ...made, keys }) });
  const oauth = createOAuth({
    ...made,
    sessions,
    findUser: createFindUser(store),
    providers: new Map(providers.map((provider) => [provider.name, provider])),
    callbackUrl: (name) => `${origin()}/api/v1/auth/oauth/${name}/callback`,
  });
  const redirectOrigins = new Set(options.allowedOrigins);
  return { ...made, settings, keys, sessions, oauth, redirectOrigins };
}

function roomOf(parts: Parts): Room {
  const { settings, store, clock, newId, observe, sessions, redirectOrigins } = parts;
  const operations = createOperations(
    { store, path: '/api/v1/operations', newId, clock, random: () => 0, observe },
    async (request, stored, companions) =>
      new Walk(room, request, {
        identify: () => ({ principal: principalOf(stored) }),
        companions,
      }).run(),
  );
  const resources = oauthResources({
    base: '/api/v1',
    oauth: parts.oauth,
    redirectOrigins,
    crossSite: createCrossSiteCheck({ publicUrl: undefined, credentialedOrigins: redirectOrigins }),
    addressOf: ({ peer }) => peer,
  });
  const unlimited = { ...settings, rateLimitReads: 0, rateLimitWrites: 0 };
  const room: Room = {
    router: createRouter(resources),
    limits: { ...settings, traceEnabled: false },
    clock,
    authenticate: (request) => identify(sessions, request),
    rates: createRateLimiter({ ...unlimited, store, onFailure: () => undefined }),
    decodeContent: (bytes) => ({ ok: true, bytes }),
    lines: store.lines,
    idempotency: createIdempotency({ store, clock, newId, lifetimeSeconds: 60 }),
    operations,
    cors: corsPolicy('', 0),
    challengesFor: () => 'Bearer realm="test"',
    development: false,
    formatDate: createHttpDateCache(64),

    loop: { begin: () => 0, end: () => undefined },
  };
  return room;
}

async function identify(sessions: Sessions, { fields }: Request): Promise<Identified> {
  if (fields.authorization === 'Bearer key') {
    return knownAs(authenticated({ id: 'key_1', scopes: ['read', 'write'] }));
  }
  if (fields.authorization !== undefined) {
    return identifiedBy(await sessions.verifyToken(fields.authorization.slice('Bearer '.length)));
  }
  const cookie = fields.cookie === undefined ? undefined : readCookie(fields.cookie, sessionCookieName);
  if (typeof cookie !== 'string') return { principal: anonymous };
  const verdict = await sessions.verifyCookie(cookie);
  // As authenticate.ts has it: a cookie that is no longer good is none.
  return 'problem' in verdict ? { principal: anonymous } : identifiedBy(verdict);
}

function identifiedBy(verdict: Verdict): Identified {
  if ('problem' in verdict) return verdict;
  return { ...verdict, confirmed: undefined, onEnd: () => () => undefined };
}
