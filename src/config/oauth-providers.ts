/**
 * Providers for signing in (§5.3): `COMITY_OAUTH_<NAME>_...` in the environment, where NAME in lower case is the provider in the path. A
 * provider of OpenID Connect needs its issuer, one of plain OAuth 2.0 three URLs; those with a preset need neither. No message repeats a
 * value, which could be a misplaced secret.
 */

export type OAuthProvider = OpenIdProvider | PlainProvider;

type Client = Departures & {
  /** Name in the path and in log lines. */
  readonly name: string;
  readonly clientId: string;
  /** With `keyId` it is a private key (PKCS#8, P-256), and the secret of each request is a token that it signs, as Apple requires. */
  readonly clientSecret: string;
  readonly keyId?: string;
  /** Issuer of those tokens. */
  readonly teamId?: string;
  /** Words separated by single spaces. */
  readonly scope: string;
};

/** What a provider does otherwise than the standards; absent: nothing. */
type Departures = {
  /** `off`: no PKCE (RFC 7636). */
  readonly pkce?: Switch;
  /** Default: as discovered, and `post` for plain OAuth 2.0. */
  readonly clientAuth?: 'basic' | 'post';
  /** `form_post`: the browser brings the code in a form (OAuth 2.0 Form Post Response Mode). */
  readonly responseMode?: 'query' | 'form_post';
  /** `off`: no nonce, because ID tokens do not repeat it. */
  readonly nonce?: Switch;
  /** Accepted for ID tokens and signed userinfo in place of what is discovered. HS256 is accepted only here. */
  readonly algorithms?: readonly ProviderAlgorithm[];
  /** The `claims` parameter of the request (OpenID Connect Core 1.0 §5.5). */
  readonly claims?: string;
};

type Switch = 'on' | 'off';

/** Signatures with a key pair (RFC 7518 §3.1, RFC 8037, RFC 9864); none that a public key could make. */
export const signatureAlgorithms = [
  'EdDSA',
  'Ed25519',
  'ES256',
  'ES384',
  'ES512',
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
] as const;
const providerAlgorithms = ['HS256', ...signatureAlgorithms] as const;
type ProviderAlgorithm = (typeof providerAlgorithms)[number];

/** Everything else is discovered (OpenID Connect Discovery 1.0 §4). */
export type OpenIdProvider = Client & { readonly kind: 'openid'; readonly issuer: string };

export type PlainProvider = Client & {
  readonly kind: 'plain';
  readonly authorizationUrl: string;
  readonly tokenUrl: string;
  readonly userinfoUrl: string;
  /** URL of a list of addresses as `{email, primary, verified}`; undefined: userinfo has the address. */
  readonly emailsUrl: string | undefined;
  /** The member of userinfo that is `true` if the provider has verified the address. */
  readonly verifiedMember: string;
};

const prefix = 'COMITY_OAUTH_';
const parts = [
  'ISSUER',
  'CLIENT_ID',
  'CLIENT_SECRET',
  'AUTHORIZATION_URL',
  'TOKEN_URL',
  'USERINFO_URL',
  'SCOPE',
  'KEY_ID',
  'TEAM_ID',
  'PKCE',
  'CLIENT_AUTH',
  'RESPONSE_MODE',
  'NONCE',
  'ALGORITHMS',
] as const;
type Part = (typeof parts)[number];
/** The values of the parts that have few. */
const choices = {
  PKCE: ['on', 'off'],
  CLIENT_AUTH: ['basic', 'post'],
  RESPONSE_MODE: ['query', 'form_post'],
  NONCE: ['on', 'off'],
} as const satisfies { readonly [part in Part]?: readonly string[] };
/** Parts without a meaning for plain OAuth 2.0, which has no ID token. */
const openIdParts = ['NONCE', 'ALGORITHMS'] as const;
const urlParts = ['AUTHORIZATION_URL', 'TOKEN_URL', 'USERINFO_URL'] as const;

const nameCharactersMax = 32;
const valueCharactersMax = 4096;
const providersMax = 64;
const macSecretCharactersMin = 32;
const openIdScope = 'openid email profile';
const plainScope = 'email';

type OpenIdPreset = Departures & {
  readonly kind: 'openid';
  /** Undefined: each customer of the provider has an issuer, which looks like `issuerExample`. */
  readonly issuer?: string;
  readonly issuerExample?: string;
  readonly scope?: string;
  /** The client secret is a key (`KEY_ID`, `TEAM_ID`). */
  readonly signs?: true;
};
type PlainPreset = Omit<PlainProvider, 'name' | 'clientId' | 'clientSecret'>;

/** From the documentation of the providers, in November 2026; docs/guides/sign-in.md has what was tried and how. */
const presets: ReadonlyMap<string, OpenIdPreset | PlainPreset> = new Map<string, OpenIdPreset | PlainPreset>([
  ['google', { kind: 'openid', issuer: 'https://accounts.google.com' }],
  ['microsoft', { kind: 'openid', issuerExample: 'https://login.microsoftonline.com/TENANT/v2.0' }],
  [
    'apple',
    {
      kind: 'openid',
      issuer: 'https://appleid.apple.com',
      scope: 'openid email name',
      signs: true,
      pkce: 'off',
      // Apple sends a query only if no scope is requested.
      responseMode: 'form_post',
    },
  ],
  [
    'github',
    {
      kind: 'plain',
      authorizationUrl: 'https://github.com/login/oauth/authorize',
      tokenUrl: 'https://github.com/login/oauth/access_token',
      userinfoUrl: 'https://api.github.com/user',
      emailsUrl: 'https://api.github.com/user/emails',
      verifiedMember: 'verified',
      scope: 'read:user user:email',
    },
  ],
  [
    'linkedin',
    {
      kind: 'openid',
      issuer: 'https://www.linkedin.com/oauth',
      ...{ nonce: 'off', pkce: 'off', clientAuth: 'post' },
    },
  ],
  ['slack', { kind: 'openid', issuer: 'https://slack.com', clientAuth: 'post' }],
  [
    'discord',
    {
      kind: 'plain',
      authorizationUrl: 'https://discord.com/oauth2/authorize',
      tokenUrl: 'https://discord.com/api/oauth2/token',
      userinfoUrl: 'https://discord.com/api/users/@me',
      emailsUrl: undefined,
      verifiedMember: 'verified',
      scope: 'identify email',
    },
  ],
  [
    'twitch',
    {
      kind: 'openid',
      issuer: 'https://id.twitch.tv/oauth2',
      scope: 'openid user:read:email',
      claims: '{"id_token":{"email":null,"email_verified":null}}',
      ...{ pkce: 'off', clientAuth: 'post' },
    },
  ],
  // The algorithm of channels for the web; the document of discovery names that of native ones.
  [
    'line',
    { kind: 'openid', issuer: 'https://access.line.me', algorithms: ['HS256', 'ES256'], clientAuth: 'post' },
  ],
  ['gitlab', { kind: 'openid', issuer: 'https://gitlab.com' }],
  ['keycloak', { kind: 'openid', issuerExample: 'https://HOST/realms/REALM' }],
  ['auth0', { kind: 'openid', issuerExample: 'https://TENANT.auth0.com/' }],
  ['okta', { kind: 'openid', issuerExample: 'https://ORGANIZATION.okta.com/oauth2/default' }],
  ['cognito', { kind: 'openid', issuerExample: 'https://cognito-idp.REGION.amazonaws.com/POOL' }],
  ['clerk', { kind: 'openid', issuerExample: 'https://clerk.DOMAIN' }],
]);

/** True if the variable has the prefix of providers, whatever follows. */
export function isProviderVariable(variable: string): boolean {
  return variable.startsWith(prefix);
}

export function isClientSecretVariable(variable: string): boolean {
  return isProviderVariable(variable) && variable.endsWith('_CLIENT_SECRET');
}

/**
 * @param environment variables by name; an empty one counts as unset
 * @param mistakes receives a sentence for each mistake
 * @returns the providers by name; none after any mistake
 */
export function readOAuthProviders(
  environment: Readonly<Record<string, string | undefined>>,
  mistakes: string[],
): ReadonlyMap<string, OAuthProvider> {
  const before = mistakes.length;
  const declared = new Map<string, Map<Part, string>>();
  for (const [variable, value] of Object.entries(environment)) {
    if (!isProviderVariable(variable) || value === undefined || value === '') continue;
    const part = parts.find((known) => variable.endsWith(`_${known}`));
    const name = part === undefined ? '' : variable.slice(prefix.length, -part.length - 1);
    if (part === undefined || !isName(name)) {
      mistakes.push(
        `${variable} must be ${prefix}<NAME>_ and one of ${parts.join(', ')}; NAME is up to ${nameCharactersMax} ` +
          'capital letters, digits and _, beginning with a letter',
      );
      continue;
    }
    const complaint = refusal(part, value);
    if (complaint !== undefined) mistakes.push(`${variable} ${complaint}`);
    const given = declared.get(name) ?? new Map<Part, string>();
    declared.set(name, given.set(part, value));
  }
  if (declared.size > providersMax) mistakes.push(`${prefix}... names more than ${providersMax} providers`);
  const providers = new Map<string, OAuthProvider>();
  for (const [name, given] of declared) {
    const provider = providerOf(name, given, mistakes);
    if (provider !== undefined) providers.set(provider.name, provider);
  }
  return mistakes.length > before ? new Map() : providers;
}

function providerOf(
  capitals: string,
  given: ReadonlyMap<Part, string>,
  mistakes: string[],
): OAuthProvider | undefined {
  const name = capitals.toLowerCase();
  const known = mistakes.length;
  const need = (part: Part): string => {
    const value = given.get(part);
    if (value === undefined) mistakes.push(`${prefix}${capitals}_${part} is missing`);
    return value ?? '';
  };
  const client = { name, clientId: need('CLIENT_ID'), clientSecret: need('CLIENT_SECRET') };
  const issuer = given.get('ISSUER');
  const urls = urlParts.filter((part) => given.has(part));
  const preset = presets.get(name);
  if (issuer !== undefined && urls.length > 0) {
    mistakes.push(
      `${prefix}${capitals}_ISSUER and ${prefix}${capitals}_${urls[0]} are both set; set only one of them`,
    );
  }
  if (issuer === undefined && urls.length === 0 && !isComplete(preset)) {
    const example = preset?.kind === 'openid' ? preset.issuerExample : undefined;
    mistakes.push(
      `${prefix}${capitals}_ISSUER is missing, ${
        example === undefined
          ? `or ${urlParts.map((part) => `_${part}`).join(', ')} in its place; only ${complete} need neither`
          : `such as ${example}`
      }`,
    );
  }
  const provider = endpointsOf(issuer, urls.length > 0 ? need : undefined, preset);
  if (provider?.kind === 'plain') {
    for (const part of openIdParts) {
      if (given.has(part))
        mistakes.push(`${prefix}${capitals}_${part} applies only to a provider with an issuer`);
    }
  }
  const signs = ['KEY_ID', 'TEAM_ID'].some((part) => given.has(part as Part)) || isSigning(provider);
  const signer = signs ? { keyId: need('KEY_ID'), teamId: need('TEAM_ID') } : {};
  const departures = departuresOf(given, provider);
  const complaint = secretComplaint(client.clientSecret, signs, departures.algorithms);
  if (given.has('CLIENT_SECRET') && complaint !== undefined)
    mistakes.push(`${prefix}${capitals}_CLIENT_SECRET ${complaint}`);
  if (mistakes.length > known || provider === undefined) return undefined;
  const scope = given.get('SCOPE') ?? provider.scope ?? openIdScope;
  const rest = { ...client, ...signer, ...departures, scope };
  if (provider.kind === 'plain') return { ...provider, ...rest };
  return { kind: 'openid', issuer: provider.issuer ?? '', ...rest };
}

function isComplete(preset: OpenIdPreset | PlainPreset | undefined): boolean {
  return preset?.kind === 'plain' || preset?.issuer !== undefined;
}

const complete = [...presets]
  .filter(([, preset]) => isComplete(preset))
  .map(([name]) => name)
  .join(', ');

function isSigning(provider: OpenIdPreset | PlainPreset | undefined): boolean {
  return provider?.kind === 'openid' && provider.signs === true;
}

/** What the operator says takes precedence over the preset. */
function departuresOf(
  given: ReadonlyMap<Part, string>,
  preset: OpenIdPreset | PlainPreset | undefined,
): Departures {
  const { pkce, clientAuth, responseMode, nonce, algorithms, claims } = preset ?? {};
  const declared = given.get('ALGORITHMS')?.split(',');
  const all: { readonly [name in keyof Departures]: Departures[name] | undefined } = {
    pkce: choiceOf(given, 'PKCE') ?? pkce,
    clientAuth: choiceOf(given, 'CLIENT_AUTH') ?? clientAuth,
    responseMode: choiceOf(given, 'RESPONSE_MODE') ?? responseMode,
    nonce: choiceOf(given, 'NONCE') ?? nonce,
    algorithms: declared?.filter(isAlgorithm) ?? algorithms,
    claims,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

function choiceOf<P extends keyof typeof choices>(
  given: ReadonlyMap<Part, string>,
  part: P,
): (typeof choices)[P][number] | undefined {
  const values: readonly (typeof choices)[P][number][] = choices[part];
  return values.find((value) => value === given.get(part));
}

/** What is wrong with a secret beside its use; undefined: nothing. */
function secretComplaint(
  secret: string,
  signs: boolean,
  algorithms: Departures['algorithms'],
): string | undefined {
  const isKey = secret.startsWith('-----BEGIN');
  if (signs) return isKey ? undefined : 'must be the private key (PEM, PKCS#8) that KEY_ID names';
  if (isKey) return 'is a key; set KEY_ID and TEAM_ID too';
  // A shorter secret can be guessed from one ID token (RFC 7518 §3.2).
  return algorithms?.includes('HS256') === true && secret.length < macSecretCharactersMin
    ? `must have at least ${macSecretCharactersMin} characters for HS256`
    : undefined;
}

function endpointsOf(
  issuer: string | undefined,
  need: ((part: Part) => string) | undefined,
  preset: OpenIdPreset | PlainPreset | undefined,
): OpenIdPreset | PlainPreset | undefined {
  if (issuer !== undefined) return { ...(preset?.kind === 'openid' ? preset : {}), kind: 'openid', issuer };
  if (need === undefined) return preset;
  return {
    kind: 'plain',
    authorizationUrl: need('AUTHORIZATION_URL'),
    tokenUrl: need('TOKEN_URL'),
    userinfoUrl: need('USERINFO_URL'),
    emailsUrl: undefined,
    verifiedMember: 'email_verified',
    scope: plainScope,
  };
}

/** What is wrong with the value, as the predicate of a sentence; undefined for a valid one. */
function refusal(part: Part, value: string): string | undefined {
  if (value.length > valueCharactersMax) return `must have at most ${valueCharactersMax} characters`;
  switch (part) {
    case 'CLIENT_SECRET':
      return isPrintable(value) || privateKey.test(value) ? undefined : mustBePrintable;
    case 'CLIENT_ID':
    case 'KEY_ID':
    case 'TEAM_ID':
      return isPrintable(value) ? undefined : mustBePrintable;
    case 'PKCE':
    case 'CLIENT_AUTH':
    case 'RESPONSE_MODE':
    case 'NONCE':
      return choices[part].some((choice) => choice === value)
        ? undefined
        : `must be ${choices[part].join(' or ')}`;
    case 'ALGORITHMS':
      return value.split(',').every(isAlgorithm)
        ? undefined
        : `must be a list, separated by commas, of ${providerAlgorithms.join(', ')}`;
    case 'SCOPE':
      return isScope(value) ? undefined : 'must be words with one space between, such as openid email';
    case 'ISSUER':
      if (sharedTenant.test(value)) return 'must name your tenant: these tokens name that of each person';
      return isEndpoint(value) && !value.includes('?') ? undefined : `${mustBeUrl}, without ?`;
    case 'AUTHORIZATION_URL':
    case 'TOKEN_URL':
    case 'USERINFO_URL':
      return isEndpoint(value) ? undefined : mustBeUrl;
  }
}

const mustBePrintable = 'may hold only printable ASCII characters';
const mustBeUrl =
  'must be an https:// URL without user and fragment (http:// only for 127.0.0.1, [::1] and localhost)';

/** Codes and secrets travel to it, so it must use TLS unless it is on this machine. */
function isEndpoint(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, hostname, username, password, hash } = new URL(value);
  if (username !== '' || password !== '' || hash !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

/** @param hostname of a URL: in lower case, IPv6 in brackets */
export function isLoopbackHost(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || loopbackIpv4.test(hostname);
}

/** The URL parser has converted every spelling to four decimal numbers. */
const loopbackIpv4 = /^127\.\d+\.\d+\.\d+$/;
const providerName = /^[A-Z][A-Z0-9_]*$/;
const printable = /^[\x20-\x7e]+$/;
/** As a file, or in one line with `\\n`. */
const privateKey =
  /^-----BEGIN PRIVATE KEY-----(?:\\n|[\sA-Za-z0-9+/=])+-----END PRIVATE KEY-----(?:\\n|\s)*$/;
/** At Microsoft, whose ID tokens have another issuer than the document of discovery then. */
const sharedTenant = /^https:\/\/login\.microsoftonline\.com\/(?:common|organizations|consumers)(?:\/|$)/;
/** RFC 6749 §3.3. */
const scopeWords = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/;

function isName(name: string): boolean {
  return name.length <= nameCharactersMax && providerName.test(name);
}

function isPrintable(value: string): boolean {
  return printable.test(value);
}

function isAlgorithm(name: string): name is ProviderAlgorithm {
  return providerAlgorithms.some((algorithm) => algorithm === name);
}

function isScope(value: string): boolean {
  return scopeWords.test(value);
}
