/**
 * Providers for signing in (§5.3): `COMITY_OAUTH_<NAME>_...` in the environment, where NAME in lower case is the provider in the path. A
 * provider of OpenID Connect needs its issuer, one of plain OAuth 2.0 three URLs; those with a preset need neither. No message repeats a
 * value, which could be a misplaced secret.
 */

export type OAuthProvider = OpenIdProvider | PlainProvider;

type Client = {
  /** Name in the path and in log lines. */
  readonly name: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Words separated by single spaces. */
  readonly scope: string;
};

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
] as const;
type Part = (typeof parts)[number];
const urlParts = ['AUTHORIZATION_URL', 'TOKEN_URL', 'USERINFO_URL'] as const;

const nameCharactersMax = 32;
const valueCharactersMax = 4096;
const providersMax = 64;
const openIdScope = 'openid email profile';
const plainScope = 'email';

type OpenIdPreset = Pick<OpenIdProvider, 'kind' | 'issuer'>;
type PlainPreset = Omit<PlainProvider, 'name' | 'clientId' | 'clientSecret'>;

/** From the documentation of the providers. Providers that assert no verified address, or need more than a fixed secret, are left out. */
const presets: ReadonlyMap<string, OpenIdPreset | PlainPreset> = new Map([
  ['google', { kind: 'openid', issuer: 'https://accounts.google.com' }],
  ['gitlab', { kind: 'openid', issuer: 'https://gitlab.com' }],
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
  const scope = given.get('SCOPE');
  const urls = urlParts.filter((part) => given.has(part));
  const preset = presets.get(name);
  if (issuer !== undefined && urls.length > 0) {
    mistakes.push(
      `${prefix}${capitals}_ISSUER and ${prefix}${capitals}_${urls[0]} are both set; set only one of them`,
    );
  }
  if (issuer === undefined && urls.length === 0 && preset === undefined) {
    mistakes.push(
      `${prefix}${capitals}_ISSUER is missing, or ${urlParts.map((part) => `_${part}`).join(', ')} in its place; ` +
        `only ${[...presets.keys()].join(', ')} need neither`,
    );
  }
  const provider = endpointsOf(issuer, urls.length > 0 ? need : undefined, preset);
  if (mistakes.length > known || provider === undefined) return undefined;
  const usual = provider.kind === 'openid' ? openIdScope : provider.scope;
  return { ...client, ...provider, scope: scope ?? usual };
}

function endpointsOf(
  issuer: string | undefined,
  need: ((part: Part) => string) | undefined,
  preset: OpenIdPreset | PlainPreset | undefined,
): OpenIdPreset | PlainPreset | undefined {
  if (issuer !== undefined) return { kind: 'openid', issuer };
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
    case 'CLIENT_ID':
    case 'CLIENT_SECRET':
      return isPrintable(value) ? undefined : 'may hold only printable ASCII characters';
    case 'SCOPE':
      return isScope(value) ? undefined : 'must be words with one space between, such as openid email';
    case 'ISSUER':
      return isEndpoint(value) && !value.includes('?') ? undefined : `${mustBeUrl}, without ?`;
    case 'AUTHORIZATION_URL':
    case 'TOKEN_URL':
    case 'USERINFO_URL':
      return isEndpoint(value) ? undefined : mustBeUrl;
  }
}

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
/** RFC 6749 §3.3. */
const scopeWords = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/;

function isName(name: string): boolean {
  return name.length <= nameCharactersMax && providerName.test(name);
}

function isPrintable(value: string): boolean {
  return printable.test(value);
}

function isScope(value: string): boolean {
  return scopeWords.test(value);
}
