/**
 * `GET {base}/auth/oauth/{provider}` leads a browser to a provider, `.../callback` is where it comes back to (§5.3). Both
 * are reads by their method alone: what they do is done by `propose`, which runs once for a request.
 *
 * With `redirect` the browser goes on to a page with a session cookie, without it the tokens are the answer. `link=true` adds the identity
 * to the account that is logged in; that takes a session, and no page of another site may ask for it.
 */
import type { OAuthProvider } from '../../config/oauth-providers.ts';
import type { Problem } from '../../http/problem.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import type { Item, OperationDocumentation } from '../../kernel/documentation.ts';
import type { CallerAddress } from '../../kernel/rate-limit/caller-address.ts';
import type { Ask, Operation, Proposal, Representation, Resource, Standing } from '../../kernel/resource.ts';
import type { AccountParts } from '../account-parts.ts';
import { accountOutput, accountsTag, tokensOutput } from '../account-schemas.ts';
import { type From, fromOf } from '../audit.ts';
import { type NextStep, stepProblem } from '../login.ts';
import type { CrossSiteCheck } from '../sessions/cookie.ts';
import { type Entered, enterAccount } from './enter-account.ts';
import {
  authorizationEndpoint,
  authorizationUrl,
  createProviderServers,
  fetchFromProvider,
  ProviderFailure,
} from './provider-server.ts';
import { redeemCode } from './redeem-code.ts';
import {
  createSignIns,
  isSecret,
  type Proofs,
  readBrowserSecret,
  type SignIn,
  setBrowserSecret,
} from './sign-ins.ts';

type Starting = Standing & { readonly asked: Asked };
type Asked = { readonly redirect: string | null; readonly link: boolean } | { readonly problem: Problem };
type Finishing = Proposal & { readonly content?: Readonly<Record<string, unknown>> };

/**
 * @param providers without any, sign-ins are not described
 * @param redirectOrigins serialized origins that may send credentials, and that a browser may be led to
 */
export function oauthResources(
  parts: AccountParts,
  providers: ReadonlyMap<string, OAuthProvider>,
  redirectOrigins: ReadonlySet<string>,
): readonly Resource[] {
  const oauth = createOAuth(parts, providers);
  const pattern = `${parts.base}/auth/oauth/{provider}`;
  const parameters: readonly Item[] = [
    {
      name: 'provider',
      in: 'path',
      required: true,
      description: 'One of the configured providers; 404 for any other.',
      schema: { type: 'string', enum: [...providers.keys()] },
    },
  ];
  const resource = (path: string, name: string, operation: Operation): Resource => ({
    pattern: path,
    ...(providers.size === 0 ? {} : { documentation: { name, tag: accountsTag, parameters } }),
    operations: new Map([['GET', operation]]),
    constantFields: [],
    offers: ['application/json'],
    // The sign-in knows whom it links; a session that the browser has meanwhile is no reason to refuse.
    ignoresCredentials: name === 'SignInCallback',
  });
  const start = startOperation(oauth, redirectOrigins, parts.isCrossSite) as Operation;
  const finish = finishOperation(oauth, parts.addressOf) as Operation;
  const callback = resource(`${pattern}/callback`, 'SignInCallback', finish);
  const forms = [...providers.values()].filter(({ responseMode }) => responseMode === 'form_post');
  if (forms.length === 0) return [resource(pattern, 'SignIn', start), callback];
  const names = new Set(forms.map(({ name }) => name));
  const post = postOperation(names, `${parts.base}/auth/oauth`) as Operation;
  const operations = new Map([...callback.operations, ['POST', post]]);
  return [resource(pattern, 'SignIn', start), { ...callback, operations }];
}

const startDocumentation: OperationDocumentation = {
  id: 'startSignIn',
  summary: 'Start a sign-in with a provider',
  description:
    'Redirects with 303 to the authorization page of the provider (OAuth 2.0 code flow with PKCE, state and nonce).',
  parameters: [
    queryParameter('redirect', {
      description:
        'Target of the redirect after the callback, which then sets a session cookie: a path of this origin, or a URL of an origin that may read responses with credentials. Without it, the callback returns tokens.',
      schema: { type: 'string' },
    }),
    queryParameter('link', {
      description:
        'Links the identity to the account of the current session. Other credentials, and requests from a page of another site, are refused with 403.',
      schema: { const: 'true' },
    }),
  ],
  mayBeMissing: true,
  // Linking takes a session.
  mayBeClosed: true,
  redirects: 'always',
  madeFields: ['Set-Cookie'],
  codes: ['provider_unavailable', 'query_parameter_invalid'],
};

const finishDocumentation: OperationDocumentation = {
  id: 'finishSignIn',
  summary: 'Finish a sign-in with a provider',
  description:
    'The provider redirects the browser here. With a `redirect` at the start, the response is 303 to it, with a session cookie; without one, 200 with tokens, or with only the account if an identity was linked to it. If the account has a second factor, the response is 401 with a `challenge` for `/auth/login/second-factor`, or the redirect has it in its fragment, as `#second_factor=...&methods=...`, and sets no cookie. HEAD does not finish a sign-in and is refused with 400.',
  parameters: ['code', 'state', 'iss', 'error', 'error_description'].map((name) =>
    queryParameter(name, { description: 'Sent by the provider.', schema: { type: 'string' } }),
  ),
  mayBeMissing: true,
  redirects: 'sometimes',
  gives: {
    representation: {
      'application/json': {
        schema: { anyOf: [tokensOutput.schema, accountOutput.schema] },
        example: tokensOutput.example,
      },
    },
  },
  representationFields: ['Set-Cookie'],
  madeFields: ['Set-Cookie'],
  codes: [
    'account_exists',
    'forbidden',
    'email_unverified',
    'provider_unavailable',
    'second_factor_required',
    'sign_in_invalid',
  ],
};

function queryParameter(name: string, rest: Item): Item {
  return { name, in: 'query', ...rest };
}

function startOperation(
  oauth: OAuth,
  redirectOrigins: ReadonlySet<string>,
  isCrossSite: CrossSiteCheck,
): Operation<Starting, never, Proposal> {
  return {
    documentation: startDocumentation,
    permission: () => 'granted',
    standing: (ask) => {
      const asked = readStart(ask.query, redirectOrigins);
      const permitted = 'problem' in asked || !asked.link || mayLink(ask, isCrossSite);
      return { exists: oauth.has(providerOf(ask)), visible: true, permitted, asked };
    },
    propose: async (ask, { asked }) => {
      if ('problem' in asked) return asked;
      const started = await oauth.start({
        provider: providerOf(ask),
        redirect: asked.redirect,
        link: asked.link ? linkOf(ask) : null,
        browser: readBrowserSecret(ask.request.fields.cookie),
      });
      if (started.kind === 'refused') return refusal(started.problem, asked.redirect);
      return { problem: null, elsewhere: started.location, elsewhereFields: started.fields };
    },
  };
}

function finishOperation(oauth: OAuth, addressOf: CallerAddress): Operation<Standing, never, Finishing> {
  return {
    documentation: finishDocumentation,
    permission: () => 'granted',
    standing: (ask) => ({ exists: oauth.has(providerOf(ask)), visible: true, permitted: true }),
    propose: async (ask) => {
      const { method, fields } = ask.request;
      // Such a request can only end in 412 and must change nothing (RFC 9110 §13.1.1).
      if (fields.ifMatch !== undefined) return { problem: null };
      const parameters = readOnce(ask.query);
      // A program that looks at a link before it is followed must not use it up.
      if (method === 'HEAD' || parameters === undefined) return { problem: { code: 'sign_in_invalid' } };
      const finished = await oauth.finish({
        provider: providerOf(ask),
        parameters,
        browser: readBrowserSecret(fields.cookie),
        ...fromOf(ask.request, addressOf),
        ask,
      });
      const { redirect } = finished;
      if (finished.kind === 'refused') return refusal(finished.problem, redirect);
      if (finished.kind === 'second-factor') return stepProposal(finished.step, redirect);
      const [content, cookies] =
        finished.kind === 'entered'
          ? [finished.opened.content, finished.opened.fields]
          : [{ user: finished.user }, []];
      if (redirect === null) return { problem: null, content };
      return { problem: null, elsewhere: redirect, elsewhereFields: cookies };
    },
    represent: (_ask, _standing, proposal) => represent(proposal),
  };
}

/**
 * Turns a form that the browser brings (OAuth 2.0 Form Post Response Mode) into the query of a GET. The form comes from another site, so
 * browsers send no `SameSite=Lax` cookie with it; they do with the GET that the 303 leads to. The code is in a URL then, as of any other
 * provider: it is good once, and only in the browser that has the secret.
 */
function postOperation(
  names: ReadonlySet<string>,
  path: string,
): Operation<Standing, ReadonlyMap<string, string>, Proposal> {
  return {
    documentation: {
      id: 'postSignIn',
      summary: 'Bring the answer of a provider as a form',
      description:
        'For providers with the response mode `form_post`: redirects with 303 to the GET of the same path, which finishes the sign-in.',
      takes: { 'application/x-www-form-urlencoded': { schema: { type: 'object' } } },
      mayBeMissing: true,
      madeFields: [],
      codes: ['sign_in_invalid'],
    },
    contentTypes: ['application/x-www-form-urlencoded'],
    contentBytesMax: formBytesMax,
    redirect: 'see_other',
    reports: true,
    permission: () => 'granted',
    standing: (ask) => ({ exists: names.has(providerOf(ask)), visible: true, permitted: true }),
    understand: (_ask, bytes) => {
      const form = readOnce(Buffer.from(bytes).toString('latin1'));
      return form === undefined
        ? { ok: false, problem: { code: 'sign_in_invalid' } }
        : { ok: true, value: form };
    },
    propose: (ask, _standing, form) => {
      const kept = [...(form ?? [])].filter(([name]) => formParameters.has(name));
      const query = new URLSearchParams(kept);
      return { problem: null, elsewhere: `${path}/${providerOf(ask)}/callback?${query}` };
    },
    act: (_ask, _standing, proposal) => ({
      made: {
        outcome: 'made',
        created: false,
        location: proposal?.elsewhere ?? null,
        ...{ doc: null, modifiedAt: null, validated: false },
      },
      rev: 0,
    }),
  };
}

/** Bounds a code, a state and a name together, so that browsers and proxies carry the URL that follows. */
const formBytesMax = 4096;
const formParameters: ReadonlySet<string> = new Set(['code', 'state', 'iss', 'error', 'user']);

/** Leads to the page of the application, which the start has validated, with the code of the refusal. */
function refusal(problem: Problem, redirect: string | null): Proposal {
  if (redirect === null) return { problem };
  const [page = '', fragment] = redirect.split('#', 2);
  const reason = problem.context?.reason;
  const told = new URLSearchParams({
    error: problem.code,
    ...(typeof reason === 'string' ? { reason } : {}),
  });
  const tail = fragment === undefined ? '' : `#${fragment}`;
  return { problem: null, elsewhere: `${page}${page.includes('?') ? '&' : '?'}${told}${tail}` };
}

/** The challenge goes into the fragment, which the browser sends to no server. */
function stepProposal(step: NextStep, redirect: string | null): Finishing {
  if (redirect === null) return { problem: stepProblem(step) };
  const { challenge, methods } = step;
  const fragment = `second_factor=${challenge}&methods=${methods.join(',')}`;
  return { problem: null, elsewhere: `${redirect}${redirect.includes('#') ? '&' : '#'}${fragment}` };
}

function represent(proposal: Finishing | undefined): Representation {
  if (proposal?.content === undefined)
    throw new Error('a finished sign-in requires content for its response');
  return {
    content: JSON.stringify(proposal.content),
    mediaType: 'application/json',
    validators: { tag: null, modifiedAt: null },
    cacheControl: 'no-store',
  };
}

function readStart(query: string | undefined, origins: ReadonlySet<string>): Asked {
  const parameters = readOnce(query);
  if (parameters === undefined)
    return invalid('the query string is malformed or repeats a parameter; send each parameter at most once');
  let redirect: string | null = null;
  let link = false;
  for (const [name, value] of parameters) {
    if (name === 'redirect') {
      const target = redirectTarget(value, origins);
      if (target === undefined) return invalid('redirect must be a path, or a URL of an allowed origin');
      redirect = target;
    } else if (name === 'link') {
      if (value !== 'true') return invalid('link must be true');
      link = true;
    } else if (name !== 'api_key')
      return invalid('unknown query parameter; the parameters are redirect and link');
  }
  return { redirect, link };
}

function invalid(message: string): Asked {
  return { problem: { code: 'query_parameter_invalid', message } };
}

/** Undefined where a name comes twice (RFC 6749 §3.1) or the query cannot be decoded. */
function readOnce(query = ''): ReadonlyMap<string, string> | undefined {
  const pairs = parseQueryString(query);
  const parameters = new Map(pairs);
  return parameters.size === pairs?.length ? parameters : undefined;
}

/**
 * A key or a password stands for its owner without a session and may not open a further way in. A cookie comes along with whatever leads
 * the browser here, so that must be a page of ours: a navigation has no Origin, and `none` is also what a link in a mail gives.
 */
function mayLink({ request, known }: Ask, isCrossSite: CrossSiteCheck): boolean {
  if (known === undefined || known.session === null) return false;
  if (known.scheme !== 'session-cookie') return true;
  const { secFetchSite, origin } = request.fields;
  if (secFetchSite === 'none') return false;
  return (secFetchSite !== undefined || origin !== undefined) && !isCrossSite(request);
}

function linkOf({ known }: Ask): Start['link'] {
  if (known === undefined || known.session === null)
    throw new Error('linking an identity requires a session');
  return { user: known.principal.id, session: known.session };
}

function providerOf({ captures }: Ask): string {
  return captures[0] ?? '';
}

const charactersMax = 2000;
/** Stands for Comity's own origin. */
const ownOrigin = 'http://own.invalid';

/**
 * Validates the page that a browser goes to after a sign-in: a path of Comity's own origin, or a page of an origin that may send
 * credentials (§5.5). Any other would make Comity an open redirector (RFC 9700 §4.11). The URL parser rewrites the result, so that it
 * has only characters of a URL and means the same to every browser.
 *
 * @param origins serialized; those that may send credentials @returns the value of Location; undefined if it is not allowed
 */
export function redirectTarget(text: string, origins: ReadonlySet<string>): string | undefined {
  if (text.length > charactersMax || forbidden.test(text)) return undefined;
  return text.startsWith('/') ? ownPath(text) : foreignPage(text, origins);
}

/** Browsers read `\` as `/` and drop tabs and line breaks: `/\evil.example` and `/<tab>/evil.example` name a host. */
const forbidden = /[\p{Cc}\s\\]/u;

function ownPath(text: string): string | undefined {
  if (!URL.canParse(text, ownOrigin)) return undefined;
  const { origin, pathname, search, hash } = new URL(text, ownOrigin);
  // `/.//evil.example` becomes `//evil.example` once its dot segments are removed.
  if (origin !== ownOrigin || pathname.startsWith('//')) return undefined;
  return `${pathname}${search}${hash}`;
}

function foreignPage(text: string, origins: ReadonlySet<string>): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const isPage = url.protocol === 'https:' || url.protocol === 'http:';
  if (!isPage || url.username !== '' || url.password !== '' || !origins.has(url.origin)) return undefined;
  return url.href;
}

// Sign-in by a provider (§5.3): `start` redirects the browser to the provider, `finish` handles its callback. The other files of this
// folder hold one step each.

type Start = SignIn & {
  /** The browser secret from the cookie; undefined if it is missing or invalidCallback. */
  readonly browser: string | undefined;
};

type Started =
  | { readonly kind: 'started'; readonly location: string; readonly fields: readonly string[] }
  | { readonly kind: 'refused'; readonly problem: Problem };

type Finish = From & {
  readonly provider: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly browser: string | undefined;
  readonly ask: Ask;
};

/** `redirect`: of the sign-in; null also for a callback that belongs to none. */
type Finished = Entered & { readonly redirect: string | null };

type OAuth = {
  readonly has: (provider: string) => boolean;
  start(start: Start): Promise<Started>;
  /** Finishes a sign-in; no callback works twice. */
  finish(finish: Finish): Promise<Finished>;
};

const secretBytes = 32;
const unavailable: Problem = { code: 'provider_unavailable' };
const invalidCallback: Problem = { code: 'sign_in_invalid' };

function createOAuth(parts: AccountParts, providers: ReadonlyMap<string, OAuthProvider>): OAuth {
  const { base, origin, random, observe, settings } = parts;
  const signIns = createSignIns(parts);
  const servers = createProviderServers(parts, fetchFromProvider);
  const callbackUrl = (name: string): string => `${origin()}${base}/auth/oauth/${name}/callback`;

  async function start({ browser, ...signIn }: Start): Promise<Started> {
    const provider = providerNamed(signIn.provider);
    const secret = browser ?? random(secretBytes).toString('base64url');
    try {
      // Before storing anything: an unreachable provider leaves no rows.
      const server = await servers(provider);
      const endpoint = authorizationEndpoint(server);
      const proofs = await signIns.begin(signIn, secret);
      const location = authorizationUrl(endpoint, server, proofs, callbackUrl(provider.name));
      return { kind: 'started', location, fields: setBrowserSecret(secret, settings.signInSeconds) };
    } catch (error) {
      return failed(provider.name, error);
    }
  }

  async function finish(arrival: Finish): Promise<Finished> {
    const { provider, parameters, browser } = arrival;
    const state = parameters.get('state');
    const taken =
      state === undefined || !isSecret(state) || browser === undefined
        ? undefined
        : await signIns.take(provider, state, browser);
    if (taken === undefined) return { ...refused(invalidCallback), redirect: null };
    const { signIn, proofs } = taken;
    return { ...(await enter(arrival, signIn, proofs)), redirect: signIn.redirect };
  }

  async function enter(arrival: Finish, { link, redirect }: SignIn, proofs: Proofs): Promise<Entered> {
    const { provider: name, parameters } = arrival;
    const reason = parameters.get('error');
    if (reason !== undefined) return refused(deniedBy(reason));
    try {
      const server = await servers(providerNamed(name));
      const identity = await redeemCode({
        server,
        parameters,
        proofs,
        redirectUri: callbackUrl(name),
        fetch: fetchFromProvider,
        timeoutMs: settings.issuerTimeoutMs,
      });
      if (identity === undefined) return refused(invalidCallback);
      return await enterAccount(parts, { ...arrival, link, identity, cookie: redirect !== null });
    } catch (error) {
      return failed(name, error);
    }
  }

  function providerNamed(name: string): OAuthProvider {
    const provider = providers.get(name);
    if (provider === undefined) throw new Error(`unknown provider ${name}`);
    return provider;
  }

  function failed(provider: string, error: unknown) {
    if (!(error instanceof ProviderFailure)) throw error;
    observe({ kind: 'provider-failed', provider, error });
    return refused(unavailable);
  }

  return { has: (name) => providers.has(name), start, finish };
}

function refused(problem: Problem) {
  return { kind: 'refused', problem } as const;
}

/** RFC 6749 §4.1.2.1 and OpenID Connect Core 1.0 §3.1.2.6. Anyone can write into the URL, so no other word is echoed. */
const reasons: ReadonlySet<string> = new Set([
  'access_denied',
  'account_selection_required',
  'consent_required',
  'interaction_required',
  'invalid_request',
  'invalid_scope',
  'login_required',
  'server_error',
  'temporarily_unavailable',
  'unauthorized_client',
  'unsupported_response_type',
]);

function deniedBy(reason: string): Problem {
  return reasons.has(reason) ? { code: 'sign_in_invalid', context: { reason } } : invalidCallback;
}
