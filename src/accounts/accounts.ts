/** Wires accounts (§5): the verifiers of credentials behind one `authenticate`, and the resources of accounts. */
import { availableParallelism } from 'node:os';
import type { Configuration } from '../config/configuration.ts';
import { ConfigurationError } from '../config/inspection.ts';
import type { LoadedSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import { type CorsPolicy, credentialedOrigins } from '../kernel/answer/cors.ts';
import type { Ask, Resource } from '../kernel/resource.ts';
import type { MailPort } from '../mail/keep-mail.ts';
import type { ServedCollection, Serving } from '../resources/collection/serving.ts';
import type { Services } from '../store/capabilities.ts';
import type { RetentionRule } from '../store/retention.ts';
import type { Change } from '../store/store.ts';
import { createAccountMail } from './account-mail.ts';
import type { AccountParts, EndpointGeneration } from './account-parts.ts';
import { auditTable, mailCodesTable, sessionsTable, signInsTable } from './account-tables.ts';
import { type FollowedKey, followAdminKey, loadAdminKey, loadSecret } from './admin-key.ts';
import { auditResources, createAudit } from './audit.ts';
import { type AddressOf, type Audit, type AuditExpunction, factOfAsk } from './audit-fact.ts';
import {
  type Authenticate,
  createAuthenticate,
  createProxyAuthenticate,
  type Verifiers,
} from './authenticate.ts';
import { passwordResource } from './change-password.ts';
import { type CrossSiteCheck, createCrossSiteCheck } from './cross-site.ts';
import { createIssuerTokens } from './issuers/verify-issuer-token.ts';
import { keyResources } from './keys/key-routes.ts';
import { keySecretsRetention } from './keys/key-rows.ts';
import { createKeyUses, type KeyUses } from './keys/key-uses.ts';
import { createKeyVerifier } from './keys/key-verifier.ts';
import { loginResources } from './login.ts';
import { createLoginLimit } from './login-limit.ts';
import {
  createEndpointMailTexts,
  createFactorMail,
  createMailTexts,
  type EndpointMailTexts,
  titleOf,
} from './mail-texts.ts';
import { meResource } from './me.ts';
import { oauthResources } from './oauth/oauth-routes.ts';
import { createPrincipalNow, type PrincipalNow } from './owner-principal.ts';
import { createCheckPassword, createPasswordVerifier } from './passwords/check-password.ts';
import { createPasswordHasher } from './passwords/hasher.ts';
import { portalLinkResources, portalSessionResource } from './portal/portal-routes.ts';
import { portalLinksCollection, portalSecretsRetention } from './portal/portal-rows.ts';
import { createPortalVerifier } from './portal/portal-verifier.ts';
import { refreshResource } from './refresh.ts';
import { registerResource } from './register.ts';
import { passwordResetResources } from './reset-password.ts';
import { createChallengeTokens, usedChallengesTable } from './second-factor/challenge-tokens.ts';
import { factorResources } from './second-factor/factor-routes.ts';
import { createFactorRule } from './second-factor/factor-rule.ts';
import { passkeyLoginResources } from './second-factor/passkeys/passkey-login.ts';
import { passkeyResources } from './second-factor/passkeys/passkey-routes.ts';
import { createRelyingParty } from './second-factor/passkeys/relying-party.ts';
import { resetFactorResource } from './second-factor/reset-factor.ts';
import { logoutResource, userSessionResources } from './sessions/session-routes.ts';
import { createSessions, sessionKeptSeconds } from './sessions/sessions.ts';
import { createAccessTokens, createBearerVerifier } from './tokens/access-token.ts';
import { createSigningKeys, type SigningKeys } from './tokens/signing-keys.ts';
import { createFindUser } from './users/find-user.ts';
import { createFunctionWrites, type FunctionWrites } from './users/function-writes.ts';
import { createNewAccounts } from './users/new-accounts.ts';
import { userResources } from './users/user-routes.ts';
import type { VerifiedCredentials } from './verified-credentials.ts';
import { verificationResources } from './verify-email.ts';

/** The program around accounts. */
export type AccountsOptions = Services & {
  readonly configuration: Configuration;
  readonly providers: LoadedSettings['providers'];
  readonly credentials: VerifiedCredentials;
  readonly cors: CorsPolicy;
  /** Keeps mails; used only if a mail server is configured. */
  readonly mailKeeper: MailPort;
  readonly addressOf: AddressOf;
  /** Something that takes mails in place of the mail server of the settings. */
  readonly outside?: object;
  /** The origin that clients see, as far as it is known: where OpenID providers lead back to. */
  readonly origin: () => string;
};

export type Accounts = {
  readonly authenticate: Authenticate;
  /** The same resources, which also accept sessions of the portal. */
  readonly openToPortal: (resources: readonly Resource[]) => readonly Resource[];
  /** For the tunnel, whose credentials are in a field of their own. */
  readonly authenticateProxy: ReturnType<typeof createProxyAuthenticate>;
  /** The principal of the caller of an accepted request when it is carried out. */
  readonly principalNow: PrincipalNow;
  readonly isCrossSite: CrossSiteCheck;
  /** Everything under `auth/`. */
  readonly resources: readonly Resource[];
  /** The keys that sign access tokens. */
  readonly keys: Pick<SigningKeys, 'published' | 'publishedSeconds'>;
  /** The entry of the audit trail about the removal of a subject's events. */
  readonly auditExpunction: AuditExpunction;
  /** The audit entry of a backup that an administrator made or deleted. */
  readonly auditBackup: (ask: Ask, type: 'backup.created' | 'backup.deleted', subject: string) => Change;
  /** Mails to the owners of endpoints. */
  readonly endpointMail: EndpointMail;
  /** @param endpoints counts the change of an account for its endpoints in the same unit */
  readonly builtIn: (
    endpoints: EndpointGeneration,
    serving: Serving,
  ) => readonly (Resource | ServedCollection)[];
  /** How an application's functions change accounts. */
  readonly functionWrites: (endpoints: EndpointGeneration) => FunctionWrites;
  /** Set if the administrator key was created at this start. */
  readonly adminKey: string | undefined;
  readonly retention: readonly RetentionRule[];
  readonly gauges: readonly (readonly [name: string, help: string, value: () => number])[];
  /** Waits for background writes, and ends threads and timers. */
  close(): Promise<void>;
};

type EndpointMail = {
  /** Undefined: no mail server is configured. */
  readonly mail: MailPort | undefined;
  /** The address of an account that is in use; undefined: there is none. */
  readonly findAddress: (owner: string) => Promise<string | undefined>;
  readonly texts: EndpointMailTexts;
};

export async function createAccounts(options: AccountsOptions): Promise<Accounts> {
  const { configuration, settings, store, clock, credentials: cache } = options;
  refuseOwnIssuer(configuration, settings);
  const adminKey = await loadAdminKey(store, settings.adminKey, clock());
  const followed = followAdminKey(options, adminKey, settings.adminKey);
  const audit = createAudit(options);
  const signingKeys = await createSigningKeys(options, audit);
  const parts = await createParts(options, audit, signingKeys);
  const { addressOf, isCrossSite, factorRule, mail, sessions, hasher } = parts;
  const uses = createKeyUses(options);
  const verifiers = verifiersOf(options, parts, followed, uses);
  const authentication = { verifiers, cache, isCrossSite, addressOf };
  const authenticatePortal = createAuthenticate(authentication, { portal: true });
  return {
    authenticate: createAuthenticate(authentication),
    openToPortal: (resources) => resources.map((each) => ({ ...each, identify: authenticatePortal })),
    authenticateProxy: createProxyAuthenticate({ verifiers, cache }),
    principalNow: createPrincipalNow(options, factorRule),
    isCrossSite,
    resources: resourcesOf(options, parts, createAuthenticate(authentication, { enrolling: true })),
    keys: signingKeys,
    auditExpunction: (ask, subject, of) =>
      audit.entry(factOfAsk(ask, addressOf, { type: 'events.expunged', subject, detail: { of } })),
    auditBackup: (ask, type, subject) => audit.entry(factOfAsk(ask, addressOf, { type, subject })),
    endpointMail: endpointMailOf(options, parts),
    builtIn: (endpoints, serving) => builtInOf(parts, endpoints, serving),
    functionWrites: (endpoints) => createFunctionWrites(parts, endpoints),
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

async function createParts(
  options: AccountsOptions,
  audit: Audit,
  signingKeys: SigningKeys,
): Promise<AccountParts> {
  const { configuration, settings, store, clock, random, origin } = options;
  const { accounts, base, title } = configuration;
  const hasher = createPasswordHasher(options, availableParallelism());
  const tokens = createAccessTokens(options, signingKeys);
  const factorRule = createFactorRule(store, settings.secondFactor);
  const limit = createLoginLimit(options);
  // Challenges are valid in every process of the store.
  const secret = await loadSecret(store, 'challenges', clock(), random);
  const application = { title, templates: configuration.mail.templates };
  const port = mailPortOf(options);
  return {
    ...{
      ...options,
      base,
      accounts,
      title: titleOf(configuration),
      audit,
      hasher,
      tokens,
      factorRule,
      limit,
    },
    isCrossSite: createCrossSiteCheck(settings.publicUrl, credentialedOrigins(options.cors)),
    findUser: createFindUser(store),
    newAccounts: createNewAccounts(accounts),
    checkPassword: createCheckPassword(options, hasher, limit, audit),
    sessions: createSessions(options, tokens, factorRule),
    challenges: createChallengeTokens(options, secret),
    relyingParty: createRelyingParty(settings, titleOf(configuration), origin),
    mail: createAccountMail(options, audit, port, createMailTexts(application, settings)),
    factorMail: createFactorMail(application, port),
  };
}

function mailPortOf({ settings, outside, mailKeeper }: AccountsOptions): MailPort | undefined {
  return settings.smtpUrl !== undefined || outside !== undefined ? mailKeeper : undefined;
}

function verifiersOf(
  options: AccountsOptions,
  parts: AccountParts,
  followed: FollowedKey,
  uses: KeyUses,
): Verifiers {
  const { settings, configuration, store, clock } = options;
  const { sessions, factorRule, checkPassword } = parts;
  const issuers = createIssuerTokens(options, configuration.issuers, fetch);
  return {
    key: createKeyVerifier({ store, clock, factorRule, uses }, followed),
    token: createBearerVerifier(options, sessions.verifyToken, issuers),
    password: createPasswordVerifier(options, checkPassword, factorRule),
    ...(settings.portal === 'on' ? { portal: createPortalVerifier({ store, clock, factorRule }) } : {}),
    session: sessions.verifyCookie,
  };
}

/** @param identify accepts credentials that can only add a second factor, which all other routes refuse */
function resourcesOf(
  { cors, providers }: AccountsOptions,
  parts: AccountParts,
  identify: Authenticate,
): readonly Resource[] {
  const admitEnrolling = (resource: Resource): Resource => ({ ...resource, identify });
  return [
    registerResource(parts),
    ...loginResources(parts),
    refreshResource(parts),
    ...[logoutResource(parts), meResource(parts)].map(admitEnrolling),
    ...[...factorResources(parts), ...passkeyResources(parts)].map(admitEnrolling),
    ...passkeyLoginResources(parts),
    resetFactorResource(parts),
    ...userSessionResources(parts),
    passwordResource(parts),
    ...verificationResources(parts),
    ...passwordResetResources(parts),
    ...oauthResources(parts, providers, credentialedOrigins(cors)),
  ];
}

function builtInOf(
  parts: AccountParts,
  endpoints: EndpointGeneration,
  serving: Serving,
): readonly (Resource | ServedCollection)[] {
  const users = userResources(parts, endpoints, serving);
  parts.newAccounts.serveBy(users.served);
  const collections = [users, keyResources(parts, endpoints, serving), auditResources(serving)];
  return parts.settings.portal === 'on'
    ? [...collections, portalLinkResources(parts, serving), portalSessionResource(parts)]
    : collections;
}

function endpointMailOf(options: AccountsOptions, { findUser }: AccountParts): EndpointMail {
  const { configuration, settings } = options;
  const application = { title: configuration.title, templates: configuration.mail.templates };
  return {
    mail: mailPortOf(options),
    texts: createEndpointMailTexts(application, settings),
    findAddress: async (owner) => {
      const user = (await findUser.byId(owner))?.user;
      return user === undefined || user.disabled ? undefined : user.email;
    },
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
