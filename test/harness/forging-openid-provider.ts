/**
 * A provider that lies: it answers as told, so that forged, broken and late answers can be seen. It speaks OpenID Connect, and plain
 * OAuth 2.0 with a userinfo address and a list of e-mail addresses beside.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { after } from 'node:test';
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose';
import type { OpenIdProvider, PlainProvider } from '../../src/config/oauth-providers.ts';
import { type Ending, listen } from './listening.ts';
import { clientSecret } from './openid-provider.ts';

export type Behaviour = {
  /** Claims of the ID token, on top of good ones. */
  claims?: Readonly<Record<string, unknown>>;
  /** Header of the ID token, on top of a good one. */
  header?: Readonly<Record<string, unknown>>;
  /** In place of the ID token. */
  idToken?: (good: string) => string | Promise<string>;
  /** In place of the answer of the token address. */
  token?: { readonly status: number; readonly body: string; readonly type?: string };
  /** Changes the good answer of the token address. */
  tokens?: (good: Readonly<Record<string, string | number>>) => {
    readonly body: string;
    readonly type?: string;
  };
  /** Parameters of the request and of the exchange that it refuses. */
  refuses?: readonly string[];
  /** How the client must authenticate. */
  wants?: 'basic' | 'post';
  /** Signs ID tokens and userinfo with HS256 and this secret. */
  mac?: string;
  /** Claims of userinfo as a signed token. */
  signedUserinfo?: Readonly<Record<string, unknown>>;
  /** The token address fails, and repeats what it was sent, as programs in trouble do. */
  repeats?: boolean;
  /** In place of the answer of the userinfo address. */
  userinfo?: { readonly status: number; readonly body: unknown };
  emails?: unknown;
  /** On top of the discovery document. */
  discovery?: Readonly<Record<string, unknown>>;
  /** Parameters of the redirect back, on top of code, state and iss; null leaves one out. */
  back?: Readonly<Record<string, string | null>>;
  /** Paths that are never answered. */
  silent?: ReadonlySet<string>;
};

export type FakeProvider = {
  readonly issuer: string;
  readonly openId: OpenIdProvider;
  readonly plain: PlainProvider;
  /** For the next sign-ins. */
  behave: Behaviour;
  /** What the token address was asked, in order. */
  readonly exchanges: URLSearchParams[];
  /** What it handed out or was handed, by what it is: codes, tokens, states, verifiers, nonces. */
  readonly secrets: (readonly [what: string, secret: string])[];
  /** Requests by path. */
  readonly asked: Map<string, number>;
  stop(): Promise<void>;
};

const algorithm = 'ES256';
const client = { clientId: 'comity', clientSecret };

export async function openFakeProvider(context: Ending = { after }): Promise<FakeProvider> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm);
  const jwk = { ...(await exportJWK(publicKey)), kid: 'fake', alg: algorithm, use: 'sig' };
  const server = createServer((request, response) => {
    answers.answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  const { url: issuer, close } = await listen(server, context);
  const fake: FakeProvider = {
    issuer,
    openId: { kind: 'openid', name: 'fake', issuer, ...client, scope: 'openid email' },
    plain: {
      kind: 'plain',
      name: 'fake',
      ...client,
      scope: 'email',
      authorizationUrl: `${issuer}/authorize?fixed=1`,
      tokenUrl: `${issuer}/token`,
      userinfoUrl: `${issuer}/userinfo`,
      emailsUrl: undefined,
      verifiedMember: 'email_verified',
    },
    behave: {},
    exchanges: [],
    secrets: [],
    asked: new Map(),
    stop: close,
  };
  const answers = new Answers(fake, jwk, privateKey);
  return fake;
}

class Answers {
  readonly #fake: FakeProvider;
  readonly #jwk: object;
  readonly #privateKey: CryptoKey;
  /** What was asked at the start, by code. */
  readonly #codes = new Map<string, URLSearchParams>();

  constructor(fake: FakeProvider, jwk: object, privateKey: CryptoKey) {
    this.#fake = fake;
    this.#jwk = jwk;
    this.#privateKey = privateKey;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { issuer, asked, behave } = this.#fake;
    const { pathname, searchParams } = new URL(request.url ?? '/', issuer);
    asked.set(pathname, (asked.get(pathname) ?? 0) + 1);
    if (behave.silent?.has(pathname) === true) return;
    switch (pathname) {
      case '/.well-known/openid-configuration':
        return send(response, 200, { ...discovery(issuer), ...behave.discovery });
      case '/jwks':
        return send(response, 200, { keys: [this.#jwk] });
      case '/authorize':
        return this.#authorize(searchParams, response);
      case '/token':
        return this.#token(request, response);
      case '/userinfo':
        if (behave.signedUserinfo !== undefined) {
          const signed = await this.#sign({ sub: 'fake-person', ...behave.signedUserinfo });
          response.writeHead(200, { 'Content-Type': 'application/jwt' }).end(signed);
          return;
        }
        return send(response, behave.userinfo?.status ?? 200, behave.userinfo?.body ?? {});
      case '/emails':
        return send(response, 200, behave.emails ?? []);
      default:
        return send(response, 404, {});
    }
  }

  #authorize(asked: URLSearchParams, response: ServerResponse): void {
    const refused = this.#fake.behave.refuses?.find((name) => asked.has(name));
    if (refused !== undefined) {
      send(response, 400, { error: 'invalid_request', refused });
      return;
    }
    const back = new URL(this.#back(asked));
    if (asked.get('response_mode') !== 'form_post') {
      response.writeHead(303, { Location: back.href }).end();
      return;
    }
    const inputs = [...back.searchParams].map(
      ([name, value]) => `<input name="${name}" value="${value.replaceAll('"', '&quot;')}">`,
    );
    back.search = '';
    response.writeHead(200, { 'Content-Type': 'text/html' });
    response.end(
      `<!doctype html><form method="post" action="${back.href}">${inputs.join('')}</form><script>document.forms[0].submit()</script>`,
    );
  }

  #back(asked: URLSearchParams): string {
    const code = this.#remember('authorization code', `code-${randomBytes(24).toString('base64url')}`);
    for (const name of ['state', 'nonce']) this.#remember(name, asked.get(name) ?? '');
    this.#codes.set(code, asked);
    const url = new URL(asked.get('redirect_uri') ?? '');
    const { issuer, behave } = this.#fake;
    const parameters = { code, state: asked.get('state'), iss: issuer, ...behave.back };
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== null) url.searchParams.set(name, value);
    }
    return url.href;
  }

  #remember(what: string, secret: string): string {
    if (secret !== '') this.#fake.secrets.push([what, secret]);
    return secret;
  }

  async #token(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const content = await text(request);
    const form = new URLSearchParams(content);
    this.#fake.exchanges.push(form);
    this.#remember('code verifier', form.get('code_verifier') ?? '');
    const { token, tokens, repeats, refuses = [], wants } = this.#fake.behave;
    const used = request.headers.authorization === undefined ? 'post' : 'basic';
    if (wants !== undefined && wants !== used) return send(response, 401, { error: 'invalid_client' });
    if (refuses.some((name) => form.has(name))) return send(response, 400, { error: 'invalid_request' });
    if (repeats === true) {
      const [, basic = ''] = (request.headers.authorization ?? '').split(' ');
      // RFC 6749 §2.3.1: both halves are encoded as in a form before they are joined.
      const credential = decodeURIComponent(Buffer.from(basic, 'base64').toString());
      const error_description = `${content} ${credential}`;
      return send(response, 500, { error: 'server_error', error_description });
    }
    if (token !== undefined) {
      response.writeHead(token.status, { 'Content-Type': token.type ?? 'application/json' }).end(token.body);
      return;
    }
    const asked = this.#codes.get(form.get('code') ?? '');
    if (asked === undefined) return send(response, 400, { error: 'invalid_grant' });
    const access_token = this.#remember('provider access token', randomBytes(24).toString('base64url'));
    const body = { access_token, token_type: 'Bearer', expires_in: 60 };
    const isOpenId = asked.get('scope')?.split(' ').includes('openid') === true;
    const good = isOpenId ? { ...body, id_token: await this.#idToken(asked.get('nonce')) } : body;
    if (tokens === undefined) return send(response, 200, good);
    const changed = tokens(good);
    response.writeHead(200, { 'Content-Type': changed.type ?? 'application/json' }).end(changed.body);
  }

  async #idToken(nonce: string | null): Promise<string> {
    const { issuer, behave } = this.#fake;
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer, aud: 'comity', sub: 'fake-person', iat: now, exp: now + 60 };
    const good = await this.#sign({ ...claims, ...(nonce === null ? {} : { nonce }), ...behave.claims });
    return this.#remember('provider ID token', (await behave.idToken?.(good)) ?? good);
  }

  #sign(claims: Readonly<Record<string, unknown>>): Promise<string> {
    const { header, mac } = this.#fake.behave;
    const alg = mac === undefined ? algorithm : 'HS256';
    return new SignJWT({ ...claims })
      .setProtectedHeader({ alg, kid: 'fake', ...header })
      .sign(mac === undefined ? this.#privateKey : new TextEncoder().encode(mac));
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

function discovery(issuer: string): Record<string, unknown> {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [algorithm],
    authorization_response_iss_parameter_supported: true,
  };
}

async function text(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  return body;
}
