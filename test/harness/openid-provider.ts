/**
 * A real OpenID provider (oidc-provider) on a port of its own, without pages: whoever is `signedIn` there is signed in at once and has
 * consented to everything; nobody there means that access was denied.
 */
import { createServer, type RequestListener } from 'node:http';
import { Provider } from 'oidc-provider';
import type { OpenIdProvider } from '../../src/config/oauth-providers.ts';
import { type Ending, listen } from './listening.ts';

/** A person as the provider knows them; `email_verified` absent: it asserts nothing. */
export type Person = {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly name?: string;
};

export type OpenedProvider = {
  readonly issuer: string;
  /** What Comity is configured with. */
  readonly provider: OpenIdProvider;
  /** Who is at the browser, from the next sign-in on. */
  signedIn: Person | undefined;
  /** Makes Comity a client; before that the provider answers 503. */
  register(callbackUrl: string): void;
  stop(): Promise<void>;
};

export const clientSecret = 'client-secret-0123456789abcdef0123456789abcdef';

/** For one test. */
export async function openProvider(context: Ending, name = 'oidc'): Promise<OpenedProvider> {
  const opened = await openProviderServer(name);
  context.after(() => opened.stop());
  return opened;
}

/** Until it is stopped. @param name that Comity knows it by */
export async function openProviderServer(name: string): Promise<OpenedProvider> {
  let handle: RequestListener = (_request, response) => response.writeHead(503).end();
  const server = createServer((request, response) => handle(request, response));
  const { url: issuer, close } = await listen(server);
  const opened: OpenedProvider = {
    issuer,
    provider: {
      kind: 'openid',
      name,
      issuer,
      clientId: 'comity',
      clientSecret,
      scope: 'openid email profile',
    },
    signedIn: undefined,
    register: (callbackUrl) => {
      handle = providerHandler(issuer, callbackUrl, () => opened.signedIn);
    },
    stop: close,
  };
  return opened;
}

function providerHandler(
  issuer: string,
  callbackUrl: string,
  signedIn: () => Person | undefined,
): RequestListener {
  const people = new Map<string, Person>();
  const provider = new Provider(issuer, {
    clients: [{ client_id: 'comity', client_secret: clientSecret, redirect_uris: [callbackUrl] }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    cookies: { keys: ['test'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    ttl: {
      AccessToken: 600,
      AuthorizationCode: 60,
      Grant: 600,
      IdToken: 600,
      Interaction: 600,
      Session: 600,
    },
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: () => people.get(id) }),
    loadExistingGrant: async (context: GrantContext) => {
      const { oidc } = context;
      // A code is good only as long as the session keeps the grant that it came from.
      const known = oidc.session.grantIdFor(oidc.client.clientId);
      if (known !== undefined) return provider.Grant.find(known);
      const grant = new provider.Grant({
        clientId: oidc.client.clientId,
        accountId: oidc.session.accountId,
      });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
  });
  const callback = provider.callback();
  return (request, response) => {
    if (request.url?.startsWith('/interaction/') !== true) return callback(request, response);
    const person = signedIn();
    if (person !== undefined) people.set(person.sub, person);
    const result = person === undefined ? { error: 'access_denied' } : { login: { accountId: person.sub } };
    provider
      .interactionFinished(request, response, result)
      .catch((error: unknown) => response.destroy(error as Error));
  };
}

type GrantContext = {
  readonly oidc: {
    readonly client: { readonly clientId: string };
    readonly session: {
      readonly accountId: string;
      grantIdFor(clientId: string): string | undefined;
    };
  };
};
