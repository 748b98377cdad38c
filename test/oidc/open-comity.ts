/**
 * The sign-in by a provider as a program would serve it: the two resources with real sessions and a real store, over real sockets. Who
 * calls is known by the session cookie, by `Bearer` and an access token, or by `Bearer key` as somebody without a session.
 */
import type { TestContext } from 'node:test';
import { createAudit } from '../../src/accounts/audit.ts';
import { oauthResources } from '../../src/accounts/oauth/oauth-routes.ts';
import { createRefresh, type Refresh } from '../../src/accounts/refresh.ts';
import { createChallengeTokens } from '../../src/accounts/second-factor/challenge-tokens.ts';
import { createFactorRule } from '../../src/accounts/second-factor/factor-row.ts';
import { createCrossSiteCheck, sessionCookieName } from '../../src/accounts/sessions/cookie.ts';
import { createSessions, type Sessions } from '../../src/accounts/sessions/sessions.ts';
import { createAccessTokens } from '../../src/accounts/tokens/access-token.ts';
import { createSigningKeys } from '../../src/accounts/tokens/signing-keys.ts';
import type { Verdict } from '../../src/accounts/verdict.ts';
import type { OAuthProvider } from '../../src/config/oauth-providers.ts';
import type { Settings } from '../../src/config/settings.ts';
import type { Request } from '../../src/http/message.ts';
import { readCookie } from '../../src/http/syntax/cookie.ts';
import type { Identified } from '../../src/kernel/resource.ts';
import { anonymous, authenticated } from '../../src/model/principal.ts';
import type { Observation, Observe } from '../../src/observe/observation.ts';
import type { Store } from '../../src/store/store.ts';
import { partsOver } from '../accounts/fixtures/plain-accounts.ts';
import { servicesOver } from '../harness/services-over.ts';
import { base, roomOf, type Surroundings, serve, surround } from '../harness/walked-resources.ts';
import { knownAs } from '../resources/known.ts';

export type OpenedComity = {
  readonly origin: string;
  /** `{origin}/api/v1/auth/oauth/{name}` */
  startOf(name: string): string;
  callbackOf(name: string): string;
  readonly store: Store;
  readonly sessions: Sessions;
  readonly refresh: Refresh;
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
  const surroundings = surround(store, { issuerTimeoutMs: 2000, ...options.settings });
  let origin = '';
  const parts = await partsOf(surroundings, options, {
    observe: (observation) => observations.push(observation),
    origin: () => origin,
  });
  const { observe, sessions, refresh } = parts;
  const authenticate = (request: Request) => identify(sessions, request);
  const { port, stop } = await serve(
    roomOf(surroundings, parts.resources, { observe, authenticate }),
    observe,
  );
  origin = `http://127.0.0.1:${port}`;
  context.after(async () => {
    await stop();
    await parts.keys.close();
    await sessions.close();
    await parts.audit.close();
  });
  return {
    origin,
    startOf: (name) => `${origin}/api/v1/auth/oauth/${name}`,
    callbackOf: (name) => `${origin}/api/v1/auth/oauth/${name}/callback`,
    store,
    sessions,
    refresh,
    observations,
    moveClock: surroundings.moveClock,
  };
}

type Wiring = { readonly observe: Observe; readonly origin: () => string };

async function partsOf(
  { store, clock, newId, settings }: Surroundings,
  options: ComityOptions,
  { observe, origin }: Wiring,
) {
  const services = servicesOver(store, { clock, newId, observe, settings });
  const audit = createAudit(services);
  const keys = await createSigningKeys(services, audit);
  const tokens = createAccessTokens(services, keys);
  const sessions = createSessions(services, tokens, createFactorRule(store, 'optional'));
  const challenges = createChallengeTokens(services, 'shared by the processes');
  const redirectOrigins = new Set(options.allowedOrigins);
  const isCrossSite = createCrossSiteCheck(undefined, redirectOrigins);
  const parts = partsOver(services, { base, origin, audit, tokens, sessions, challenges, isCrossSite });
  const providers = new Map(options.providers.map((provider) => [provider.name, provider]));
  const resources = oauthResources(parts, providers, redirectOrigins);
  return { observe, audit, keys, sessions, refresh: createRefresh(parts), resources };
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
