/**
 * Wires accounts (§5): verifiers of credentials behind one `authenticate`, and accounts with everything that has a path. Apart from
 * compose.ts because of its size alone; the same rule holds, that nothing is reached but by argument.
 */
import { availableParallelism } from 'node:os';
import type { Configuration } from '../config/configuration.ts';
import { ConfigurationError } from '../config/inspection.ts';
import type { LoadedSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import type { Request } from '../http/message.ts';
import { type CorsPolicy, credentialedOrigins } from '../kernel/answer/cors.ts';
import type { Ask, Resource } from '../kernel/resource.ts';
import type { MailPort } from '../mail/mail-port.ts';
import type { Collection } from '../model/collection.ts';
import type { ServedCollection, Serving } from '../resources/collection/serving.ts';
import type { Services } from '../store/capabilities.ts';
import type { RetentionRule } from '../store/retention.ts';
import type { Change } from '../store/store.ts';
import { keysCollection } from './account-collections.ts';
import { createAccountMail } from './account-mail.ts';
import { auditTable, mailCodesTable, sessionsTable, signInsTable } from './account-tables.ts';
import { loadAdminKey, loadSecret } from './admin-key.ts';
import { createAudit } from './audit.ts';
import type { Audit } from './audit-fact.ts';
import { type Authenticate, createAuthenticate, createProxyAuthenticate } from './authenticate.ts';
import { builtInCollections } from './built-in-collections.ts';
import { createChangePassword, passwordResource } from './change-password.ts';
import { type CrossSiteCheck, createCrossSiteCheck } from './cross-site.ts';
import { type AuditExpunction, factOfAsk } from './fact-of-ask.ts';
import { followAdminKey } from './follow-admin-key.ts';
import { createIssuerTokens } from './issuers/verify-issuer-token.ts';
import { keySecretsRetention } from './keys/key-rows.ts';
import { createKeyUses } from './keys/key-uses.ts';
import { createKeyVerifier, type KeyVerifierOptions } from './keys/key-verifier.ts';
import { createLogin, loginResource } from './login.ts';
import { createLoginLimit, type LoginLimit } from './login-limit.ts';
import { logoutResource } from './logout.ts';
import { createEndpointMailTexts, createMailTexts, type EndpointMailTexts, titleOf } from './mail-texts.ts';
import { createOAuth } from './oauth/oauth.ts';
import { oauthResources } from './oauth/oauth-routes.ts';
import { createPrincipalNow, type PrincipalNow } from './owner-principal.ts';
import {
  type CheckPassword,
  createCheckPassword,
  createPasswordVerifier,
} from './passwords/check-password.ts';
import { createPasswordHasher, type PasswordHasher } from './passwords/hasher.ts';
import { portalLinkResources } from './portal/link-routes.ts';
import { portalSessionResource } from './portal/open-session.ts';
import { portalLinksCollection, portalSecretsRetention } from './portal/portal-rows.ts';
import { createPortalVerifier } from './portal/portal-verifier.ts';
import { createRegister, registerResource } from './register.ts';
import { createResetPassword, passwordResetResources } from './reset-password.ts';
import {
  type ChallengeTokens,
  createChallengeTokens,
  usedChallengesTable,
} from './second-factor/challenge-tokens.ts';
import { createFactorMail } from './second-factor/factor-mail.ts';
import { factorResources } from './second-factor/factor-routes.ts';
import { createFactorRule, type FactorRule } from './second-factor/factor-rule.ts';
import type { AdmitEnrolling } from './second-factor/factor-schemas.ts';
import { createFinishLogin } from './second-factor/finish-login.ts';
import { finishLoginResource } from './second-factor/finish-login-route.ts';
import { passkeyLoginResources } from './second-factor/passkeys/passkey-login-routes.ts';
import { passkeyResources } from './second-factor/passkeys/passkey-routes.ts';
import { createRelyingParty } from './second-factor/passkeys/relying-party.ts';
import { resetFactorResource } from './second-factor/reset-factor.ts';
import { meResource, refreshResource } from './session-routes.ts';
import { createSessions } from './sessions/create-sessions.ts';
import { type Sessions, sessionKeptSeconds } from './sessions/sessions.ts';
import { userSessionResources } from './sessions/user-session-routes.ts';
import { createAccessTokens, createBearerVerifier } from './tokens/access-token.ts';
import { createSigningKeys, type SigningKeys } from './tokens/signing-keys.ts';
import { createFindUser, type FindUser } from './users/find-user.ts';
import { createFunctionWrites, type FunctionWrites } from './users/function-writes.ts';
import { createNewAccounts, type NewAccounts } from './users/new-accounts.ts';
import type { VerifiedCredentials } from './verified-credentials.ts';
import type { Verifiers } from './verifiers.ts';
import { createVerifyEmail, verificationResources } from './verify-email.ts';

export type AccountsOptions = Services & {
  readonly configuration: Configuration;
  readonly settings: Settings;
  readonly providers: LoadedSettings['providers'];
  readonly credentials: VerifiedCredentials;
  readonly cors: CorsPolicy;
  /** Keeps mails; used only if a mail server is configured. */
  readonly mailKeeper: MailPort;
  /** The address that limits count a caller by. */
  readonly addressOf: (request: Pick<Request, 'fields' | 'peer'>) => string;
  /** Something that takes mails in place of the mail server of the settings. */
  readonly outside?: object;
  /** The origin that clients see, as far as it is known: where OpenID providers lead back to. */
  readonly origin: () => string;
};

/** How a unit counts for the endpoints that are sent to (webhooks/sending/fan-out/generation.ts); the store that serves keeps it in step. */
export type EndpointGeneration = {
  readonly generationChanges: () => readonly Change[];
};

export type Accounts = {
  readonly authenticate: Authenticate;
  /** The same resources, which also accept sessions of the portal. */
  readonly openToPortal: (resources: readonly Resource[]) => readonly Resource[];
  /** For the tunnel, whose credentials stand in a field of their own. */
  readonly authenticateProxy: ReturnType<typeof createProxyAuthenticate>;
  /** Whom the caller of an accepted request stands for when it is carried out. */
  readonly principalNow: PrincipalNow;
  /** Whether a page of a site that is neither ours nor allowed has sent the request. */
  readonly isCrossSite: CrossSiteCheck;
  /** Everything under `auth/`. */
  readonly resources: readonly Resource[];
  /** What access tokens are signed with. */
  readonly keys: Pick<SigningKeys, 'published' | 'publishedSeconds'>;
  /** The entry of the audit trail about the removal of a subject's events. */
  readonly auditExpunction: AuditExpunction;
  /** The audit entry of a backup that an administrator made or deleted. */
  readonly auditBackup: (ask: Ask, type: 'backup.created' | 'backup.deleted', subject: string) => Change;
  /** How owners of endpoints are told of them. */
  readonly endpointMail: EndpointMail;
  /** @param endpoints what makes the change of an account count for its endpoints in the same instant */
  readonly builtIn: (
    endpoints: EndpointGeneration,
  ) => (serving: Serving) => readonly (Resource | ServedCollection)[];
  /** How an application's functions change accounts. */
  readonly functionWrites: (endpoints: EndpointGeneration) => FunctionWrites;
  /** Set when the administrator key was made at this start. */
  readonly adminKey: string | undefined;
  readonly retention: readonly RetentionRule[];
  readonly gauges: readonly (readonly [name: string, help: string, value: () => number])[];
  /** Waits for what is written in the background, and ends threads and timers. */
  close(): Promise<void>;
};

export type EndpointMail = {
  /** Undefined: no mail server is configured. */
  readonly mail: MailPort | undefined;
  /** The address of an account that is in use; undefined: there is none. */
  readonly findAddress: (owner: string) => Promise<string | undefined>;
  readonly texts: EndpointMailTexts;
};

/** What every part of it is given. */
type Parts = AccountsOptions & {
  readonly audit: Audit;
  readonly findUser: FindUser;
  readonly users: Collection;
  readonly newAccounts: NewAccounts;
  readonly hasher: PasswordHasher;
  readonly checkPassword: CheckPassword;
  readonly limit: LoginLimit;
  readonly factorRule: FactorRule;
  readonly challenges: ChallengeTokens;
  readonly sessions: Sessions;
  readonly signingKeys: SigningKeys;
  readonly isCrossSite: CrossSiteCheck;
};

export async function createAccounts(options: AccountsOptions): Promise<Accounts> {
  const { configuration, settings, store, clock, random, newId, observe } = options;
  refuseOwnIssuer(configuration, settings);
  const adminKey = await loadAdminKey(store, settings.adminKey, clock());
  const followed = followAdminKey(store, adminKey, settings.adminKey, observe);
  const audit = createAudit({ store, newId, clock, observe, waitingMax: settings.auditWaitingMax });
  const signingKeys = await createSigningKeys({ ...settings, store, clock, newId, observe, audit });
  const hasher = createPasswordHasher({ ...settings, cores: availableParallelism(), random, observe });
  // A listening address is one process's own: a token of one must be good at all of them.
  const origin = () => settings.publicUrl;
  const tokens = createAccessTokens({ ...settings, keys: signingKeys, clock, random, origin });
  const factorRule = createFactorRule(store, settings.secondFactor);
  const sessions = createSessions({
    ...settings,
    ...{ store, clock, random, newId, observe, audit, tokens, factorRule },
  });
  const findUser = createFindUser(store);
  const limit = limitOf(options);
  const checkPassword = createCheckPassword({ store, findUser, hasher, limit, audit, observe });
  const isCrossSite = createCrossSiteCheck({
    publicUrl: settings.publicUrl,
    credentialedOrigins: credentialedOrigins(options.cors),
  });
  const newAccounts = createNewAccounts(configuration.accounts);
  const { users } = configuration.accounts;
  const parts = {
    ...{ ...options, audit, findUser, users, newAccounts, hasher, checkPassword, sessions },
    ...{ signingKeys, isCrossSite, limit, challenges: await challengesOf(options), factorRule },
  };
  const uses = createKeyUses({ ...settings, store, observe, searchFields: keysCollection.searchFields });
  const cache = options.credentials;
  const mail = mailOf(parts);
  const adminKeyKept = settings.adminKey === undefined;
  const verifiers = verifiersOf(parts, { adminKeyHash: followed.hash, adminKeyKept, uses });
  const authentication = { verifiers, cache, crossSite: isCrossSite, addressOf: options.addressOf };
  const authenticateEnrolling = createAuthenticate(authentication, { enrolling: true });
  const authenticatePortal = createAuthenticate(authentication, { portal: true });
  return {
    authenticate: createAuthenticate(authentication),
    openToPortal: (resources) => resources.map((each) => ({ ...each, identify: authenticatePortal })),
    authenticateProxy: createProxyAuthenticate({ verifiers, cache }),
    principalNow: createPrincipalNow({ ...options, factorRule }),
    isCrossSite,
    resources: resourcesOf(parts, mail, (resource) => ({ ...resource, identify: authenticateEnrolling })),
    keys: signingKeys,
    auditExpunction: auditExpunctionOf(parts),
    auditBackup: auditBackupOf(parts),
    endpointMail: endpointMailOf(parts, mail.port),
    builtIn: (endpoints) => builtInOf(parts, endpoints),
    functionWrites: ({ generationChanges }) =>
      createFunctionWrites({ ...settings, ...configuration, audit, generationChanges }),
    adminKey: adminKey.made,
    retention: retentionOf(settings),
    gauges: [
      ['comity_verified_credentials', 'Verified credentials that are remembered.', () => cache.size()],
      ['comity_audit_waiting', 'Facts that wait to be written to the audit trail.', () => audit.waiting()],
      ['comity_passwords_waiting', 'Passwords that wait to be hashed.', () => hasher.waiting()],
    ],
    async close() {
      followed.stop();
      cache.close();
      await Promise.all([mail.close(), uses.close(), sessions.close(), signingKeys.close(), hasher.close()]);
      await audit.close();
    },
  };
}

function refuseOwnIssuer({ issuers }: Configuration, { publicUrl }: Settings): void {
  if (issuers.every(({ issuer }) => issuer !== publicUrl)) return;
  throw new ConfigurationError(['issuers names COMITY_PUBLIC_URL, whose tokens are our own']);
}

function limitOf({ store, clock, settings }: AccountsOptions) {
  const { loginAttempts: attempts, loginWindowSeconds: windowSeconds } = settings;
  return createLoginLimit({ store, clock, attempts, windowSeconds });
}

function verifiersOf(
  parts: Parts,
  keys: Pick<KeyVerifierOptions, 'adminKeyHash' | 'adminKeyKept' | 'uses'>,
): Verifiers {
  return {
    key: createKeyVerifier({ ...parts, ...keys }),
    token: bearerOf(parts),
    password: createPasswordVerifier({ ...parts.settings, ...parts }),
    ...(parts.settings.portal === 'on' ? { portal: createPortalVerifier(parts) } : {}),
    session: parts.sessions.verifyCookie,
  };
}

/** Challenges are good in every process of the store. */
async function challengesOf({ store, clock, random, settings }: AccountsOptions): Promise<ChallengeTokens> {
  const secret = await loadSecret(store, 'challenges', clock(), random);
  return createChallengeTokens({ ...settings, store, secret, clock, random });
}

function bearerOf({ configuration, settings, sessions, clock, observe }: Parts) {
  return createBearerVerifier({
    own: sessions.verifyToken,
    issuers: createIssuerTokens({ ...settings, issuers: configuration.issuers, clock, observe, fetch }),
    tokenCharactersMax: settings.tokenCharactersMax,
  });
}

function mailOf(parts: Parts) {
  const { configuration, settings } = parts;
  const isSent = settings.smtpUrl !== undefined || parts.outside !== undefined;
  const port = isSent ? parts.mailKeeper : undefined;
  const texts = createMailTexts({ ...settings, ...configuration.mail, title: configuration.title });
  const accountMail = createAccountMail({ ...settings, ...parts, port, texts });
  const factorMail = createFactorMail({ ...configuration.mail, title: configuration.title, port });
  return { accountMail, factorMail, port, close: () => accountMail.close() };
}

function auditExpunctionOf({ audit, addressOf }: Parts): AuditExpunction {
  return (ask, subject, of) =>
    audit.entry(factOfAsk(ask, addressOf, { type: 'events.expunged', subject, detail: { of } }));
}

function auditBackupOf({ audit, addressOf }: Parts): Accounts['auditBackup'] {
  return (ask, type, subject) => audit.entry(factOfAsk(ask, addressOf, { type, subject }));
}

function endpointMailOf(
  { configuration, settings, findUser }: Parts,
  mail: MailPort | undefined,
): EndpointMail {
  return {
    mail,
    texts: createEndpointMailTexts({ ...settings, ...configuration.mail, title: configuration.title }),
    findAddress: async (owner) => {
      const user = (await findUser.byId(owner))?.user;
      return user === undefined || user.disabled ? undefined : user.email;
    },
  };
}

function resourcesOf(
  parts: Parts,
  { accountMail: mail, factorMail }: Pick<ReturnType<typeof mailOf>, 'accountMail' | 'factorMail'>,
  admitEnrolling: AdmitEnrolling,
): readonly Resource[] {
  const { configuration, settings } = parts;
  const { base } = configuration;
  const { accounts } = configuration;
  const issuer = titleOf(configuration);
  const relyingParty = createRelyingParty({ ...settings, title: issuer, origin: parts.origin });
  const own = {
    ...{ ...settings, ...parts, base, accounts, limits: settings, mail, factorMail, issuer },
    relyingParty,
    admitEnrolling,
  };
  const finishLogin = createFinishLogin(own);
  return [
    registerResource({
      ...own,
      register: createRegister(own),
      registrationOpen: settings.registration === 'open',
    }),
    loginResource({ ...own, login: createLogin(own), finishLogin }),
    finishLoginResource({ ...own, finishLogin }),
    refreshResource(own),
    ...[logoutResource(own), meResource(own)].map(admitEnrolling),
    ...factorResources(own),
    ...passkeyResources(own),
    ...passkeyLoginResources(own),
    resetFactorResource(own),
    ...userSessionResources(own),
    passwordResource({ ...own, changePassword: createChangePassword(own) }),
    ...verificationResources({ ...own, verifyEmail: createVerifyEmail(own) }),
    ...passwordResetResources({ ...own, resetPassword: createResetPassword(own) }),
    ...oauthResources({
      ...own,
      oauth: createOAuth({
        ...own,
        callbackUrl: (provider) => `${parts.origin()}${base}/auth/oauth/${provider}/callback`,
      }),
      providers: [...parts.providers.keys()],
      redirectOrigins: credentialedOrigins(parts.cors),
      crossSite: parts.isCrossSite,
    }),
  ];
}

function builtInOf(
  parts: Parts,
  { generationChanges }: EndpointGeneration,
): (serving: Serving) => readonly (Resource | ServedCollection)[] {
  const { configuration, settings, hasher, newAccounts, users } = parts;
  const options = { ...settings, ...parts, ...configuration, hashPassword: hasher.hash, generationChanges };
  const collections = builtInCollections(options);
  return (serving) => {
    const served = collections(serving);
    for (const each of served) if (each.served.collection === users) newAccounts.serveBy(each.served);
    const own = { ...options, limits: settings };
    return settings.portal === 'on'
      ? [...served, portalLinkResources(own, serving), portalSessionResource(own)]
      : served;
  };
}

function retentionOf(settings: Settings): readonly RetentionRule[] {
  return [
    { table: sessionsTable, seconds: sessionKeptSeconds(settings) },
    { table: mailCodesTable, seconds: Math.max(settings.verificationCodeSeconds, settings.resetCodeSeconds) },
    { table: portalLinksCollection.name, seconds: settings.portalLinkSecondsMax },
    portalSecretsRetention,
    { table: signInsTable, seconds: settings.signInSeconds },
    { table: usedChallengesTable, seconds: settings.secondFactorChallengeSeconds },
    keySecretsRetention,
    { table: auditTable, seconds: settings.auditSeconds },
  ];
}
