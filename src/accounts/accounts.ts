/** Wires accounts (§5): the verifiers of credentials behind one `authenticate`, and the resources of accounts. */
import { availableParallelism } from 'node:os';
import type { Configuration } from '../config/configuration.ts';
import type { LoadedSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import type { FieldError, Problem } from '../http/problem.ts';
import { corsPolicy, credentialedOrigins } from '../kernel/answer/cors.ts';
import type { CallerAddress } from '../kernel/rate-limit/caller-address.ts';
import type { Ask, Resource } from '../kernel/resource.ts';
import { normalizeEmail } from '../mail/email.ts';
import type { MailPort } from '../mail/keep-mail.ts';
import type { Cause } from '../model/actor.ts';
import { administratorRole } from '../model/principal.ts';
import type { ServedCollection } from '../resources/collection/serve-collection.ts';
import type { Accompaniment, Serving, Written } from '../resources/collection/served-collection.ts';
import type { Services } from '../store/capabilities.ts';
import type { RetentionRule } from '../store/retention.ts';
import type { Change, NextRow, Row } from '../store/store.ts';
import { createAccountMail, removeCodes } from './account-mail.ts';
import type { AccountParts, EndpointGeneration } from './account-parts.ts';
import { emailFault } from './account-schemas.ts';
import {
  auditTable,
  fieldsOfUser,
  mailCodesTable,
  ownAccountMembers,
  readUser,
  sessionsTable,
  signInsTable,
  type User,
} from './account-tables.ts';
import { type FollowedKey, followAdminKey, loadAdminKey, loadSecret } from './admin-key.ts';
import { createAttemptLimit, loginRule } from './attempt-limit.ts';
import { type Audit, type AuditExpunction, auditResources, createAudit, factOfAsk } from './audit.ts';
import {
  type Authenticate,
  createAuthenticate,
  createProxyAuthenticate,
  type Verifiers,
} from './authenticate.ts';
import { emailResources } from './change-email.ts';
import { invitationResources } from './invitations.ts';
import { keyResources } from './keys/key-routes.ts';
import { keySecretsRetention } from './keys/key-rows.ts';
import { createKeyUses, createKeyVerifier, type KeyUses } from './keys/key-verifier.ts';
import { loginResources } from './login.ts';
import { mailLoginResources } from './mail-login.ts';
import {
  createEndpointMailTexts,
  createFactorMail,
  createMailTexts,
  type EndpointMailTexts,
  mailCodePurposes,
  secondsOfCode,
  titleOf,
} from './mail-texts.ts';
import { meResource } from './me.ts';
import { oauthResources } from './oauth/oauth-routes.ts';
import { createPrincipalNow, type PrincipalNow } from './owner-principal.ts';
import { createCheckPassword, createPasswordVerifier } from './passwords/check-password.ts';
import { createPasswordHasher } from './passwords/hasher.ts';
import { passwordResetResources, passwordResource } from './passwords/set-password.ts';
import { portalLinkResources, portalSessionResource } from './portal/portal-routes.ts';
import {
  createPortalVerifier,
  portalLinksCollection,
  portalSecretsRetention,
} from './portal/portal-verifier.ts';
import { refreshResource } from './refresh.ts';
import { registerPasskeyResource, registerResource } from './register.ts';
import { viewResources } from './saved-views.ts';
import { createChallengeTokens, usedChallengesTable } from './second-factor/challenge-tokens.ts';
import { resetFactorResource } from './second-factor/change-factor.ts';
import { factorResources } from './second-factor/factor-routes.ts';
import { createFactorRule } from './second-factor/factor-row.ts';
import { passkeyLoginResources } from './second-factor/passkeys/passkey-login.ts';
import { passkeyResources } from './second-factor/passkeys/passkey-routes.ts';
import { createRelyingParty } from './second-factor/passkeys/webauthn.ts';
import { type CrossSiteCheck, createCrossSiteCheck } from './sessions/cookie.ts';
import { logoutResource, userSessionResources } from './sessions/session-routes.ts';
import { createSessions, sessionKeptSeconds } from './sessions/sessions.ts';
import { createAccessTokens } from './tokens/access-token.ts';
import { createBearerVerifier, createIssuerTokens } from './tokens/issuer-tokens.ts';
import { createSigningKeys, type SigningKeys } from './tokens/signing-keys.ts';
import { createAdministering } from './users/administering.ts';
import { createNewAccounts } from './users/new-accounts.ts';
import { factsOf, mayBeToldOtherwise, userResources } from './users/user-routes.ts';
import { createFindUser } from './users/user-row.ts';
import type { VerifiedCredentials } from './verified-credentials.ts';
import { verificationResources } from './verify-email.ts';

/** Parts of the program that accounts use beside the services. */
type Surroundings = {
  readonly credentials: VerifiedCredentials;
  /** Undefined: no mail server is configured. */
  readonly mailPort: MailPort | undefined;
  readonly addressOf: CallerAddress;
  /** The origin that clients see, as far as it is known: where OpenID providers lead back to. */
  readonly origin: () => string;
};

/** The declarations of the configuration and of the environment. */
type Declared = {
  readonly configuration: Configuration;
  readonly providers: LoadedSettings['providers'];
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

/** @param providers for sign-in, by their names in the environment */
export async function createAccounts(
  services: Services,
  { configuration, providers }: Declared,
  surroundings: Surroundings,
): Promise<Accounts> {
  const { settings, store, clock } = services;
  const { credentials: cache, addressOf, mailPort } = surroundings;
  const adminKey = await loadAdminKey(store, settings.adminKey, clock());
  const followed = followAdminKey(services, adminKey, settings.adminKey);
  const audit = createAudit(services);
  const signingKeys = await createSigningKeys(services, audit);
  const parts = await createParts(services, configuration, { ...surroundings, audit, signingKeys });
  const { isCrossSite, factorRule, mail, sessions, hasher } = parts;
  const uses = createKeyUses(services);
  const principalNow = createPrincipalNow(services, factorRule);
  const verifiers = verifiersOf(parts, configuration, followed, uses);
  const authentication = { verifiers, cache, isCrossSite, addressOf };
  const authenticatePortal = createAuthenticate(authentication, { portal: true });
  return {
    authenticate: createAuthenticate(authentication),
    openToPortal: (resources) => resources.map((each) => ({ ...each, identify: authenticatePortal })),
    authenticateProxy: createProxyAuthenticate({ verifiers, cache }),
    principalNow,
    isCrossSite,
    resources: [
      ...resourcesOf(parts, providers, createAuthenticate(authentication, { enrolling: true })),
      ...(configuration.accounts.invitations ? invitationResources(parts, principalNow) : []),
    ],
    keys: signingKeys,
    auditExpunction: (ask, subject, of) =>
      audit.entry(factOfAsk(ask, addressOf, { type: 'events.expunged', subject, detail: { of } })),
    auditBackup: (ask, type, subject) => audit.entry(factOfAsk(ask, addressOf, { type, subject })),
    endpointMail: endpointMailOf(configuration, parts, mailPort),
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

async function createParts(
  services: Services,
  configuration: Configuration,
  {
    audit,
    signingKeys,
    addressOf,
    origin,
    mailPort,
  }: Surroundings & { readonly audit: Audit; readonly signingKeys: SigningKeys },
): Promise<AccountParts> {
  const { settings, store, clock, random } = services;
  const { accounts, base } = configuration;
  const title = titleOf(configuration);
  const hasher = createPasswordHasher(services, availableParallelism());
  const tokens = createAccessTokens(services, signingKeys);
  const factorRule = createFactorRule(store, settings.secondFactor, accounts.factorRoles);
  const limit = createAttemptLimit(services, loginRule(services.settings));
  // Challenges are valid in every process of the store.
  const secret = await loadSecret(store, 'challenges', clock(), random);
  const application = { title, templates: configuration.mail.templates };
  return {
    ...{ ...services, base, accounts, title, addressOf, origin },
    ...{ audit, hasher, tokens, factorRule, limit },
    isCrossSite: createCrossSiteCheck(settings.publicUrl, originsOf(settings)),
    administering: createAdministering(accounts),
    findUser: createFindUser(store),
    newAccounts: createNewAccounts(accounts),
    checkPassword: createCheckPassword(services, hasher, limit, audit),
    sessions: createSessions(services, tokens, factorRule),
    challenges: createChallengeTokens(services, secret),
    relyingParty: createRelyingParty(settings, title, origin),
    mail: createAccountMail(services, audit, mailPort, createMailTexts(application, settings)),
    factorMail: createFactorMail(application, mailPort),
  };
}

function verifiersOf(
  parts: AccountParts,
  configuration: Pick<Configuration, 'issuers'>,
  followed: FollowedKey,
  uses: KeyUses,
): Verifiers {
  const { settings, store, clock, sessions, factorRule, checkPassword } = parts;
  const issuers = createIssuerTokens(parts, configuration.issuers, fetch);
  return {
    key: createKeyVerifier({ store, clock, factorRule, uses }, followed),
    token: createBearerVerifier(parts, sessions.verifyToken, issuers),
    password: createPasswordVerifier(parts, checkPassword, factorRule),
    ...(settings.portal === 'on' ? { portal: createPortalVerifier({ store, clock, factorRule }) } : {}),
    session: sessions.verifyCookie,
  };
}

/** The origins that may send credentials. */
function originsOf(settings: Settings): ReadonlySet<string> {
  return credentialedOrigins(corsPolicy(settings));
}

/** @param identify accepts credentials that can only add a second factor, which all other routes refuse */
function resourcesOf(
  parts: AccountParts,
  providers: Declared['providers'],
  identify: Authenticate,
): readonly Resource[] {
  const admitEnrolling = (resource: Resource): Resource => ({ ...resource, identify });
  return [
    registerResource(parts),
    ...(parts.settings.passkeyRegistration ? [registerPasskeyResource(parts)] : []),
    ...loginResources(parts),
    refreshResource(parts),
    ...[logoutResource(parts), meResource(parts)].map(admitEnrolling),
    ...[...factorResources(parts), ...passkeyResources(parts)].map(admitEnrolling),
    ...passkeyLoginResources(parts),
    ...mailLoginResources(parts),
    resetFactorResource(parts),
    ...userSessionResources(parts),
    passwordResource(parts),
    ...verificationResources(parts),
    ...(parts.accounts.emailChange ? emailResources(parts) : []),
    ...passwordResetResources(parts),
    ...oauthResources(parts, providers, originsOf(parts.settings)),
  ];
}

function builtInOf(
  parts: AccountParts,
  endpoints: EndpointGeneration,
  serving: Serving,
): readonly (Resource | ServedCollection)[] {
  const users = userResources(parts, endpoints, serving);
  parts.newAccounts.serveBy(users.served);
  const collections = [
    ...[users, keyResources(parts, endpoints, serving), auditResources(serving)],
    viewResources(serving),
  ];
  return parts.settings.portal === 'on'
    ? [...collections, portalLinkResources(parts, serving), portalSessionResource(parts)]
    : collections;
}

function endpointMailOf(
  { title, mail: { templates } }: Configuration,
  { findUser, settings }: AccountParts,
  mail: MailPort | undefined,
): EndpointMail {
  return {
    mail,
    texts: createEndpointMailTexts({ title, templates }, settings),
    findAddress: async (owner) => {
      const user = (await findUser.byId(owner))?.user;
      return user === undefined || user.disabled ? undefined : user.email;
    },
  };
}

function retentionOf(settings: Settings): readonly RetentionRule[] {
  return [
    { table: sessionsTable, seconds: sessionKeptSeconds(settings) },
    {
      table: mailCodesTable,
      seconds: Math.max(...mailCodePurposes.map((purpose) => secondsOfCode(settings, purpose))),
    },
    { table: portalLinksCollection.name, seconds: settings.portalLinkSecondsMax },
    portalSecretsRetention,
    { table: signInsTable, seconds: settings.signInSeconds },
    { table: usedChallengesTable, seconds: settings.secondFactorChallengeSeconds },
    keySecretsRetention,
    { table: auditTable, seconds: settings.auditSeconds },
  ];
}

// Accounts that an application's functions create and change (§5.7.9), by the rules of the collection and with the consequences that a
// request has: a disabled account loses its sessions and codes, a new address its codes. Functions make no administrator and change the
// rights, address and state of none, so that a function which hands on what a client sent cannot give the program away.

/** The content of a call: a value, or its JSON text as threads send it. */
type Given =
  | { readonly do: 'create'; readonly fields: unknown }
  | { readonly do: 'update'; readonly patch: unknown };

type FunctionWrites = {
  /** Brings an address into its one spelling; a new one is not verified unless the call says so. */
  readonly prepare: <C extends Given>(call: C, before: Pick<Row, 'doc'> | undefined) => C;
  readonly judge: (written: Written) => Promise<Accompaniment>;
  readonly consequences: (writes: readonly AccountWrite[], cause: Cause) => readonly Change[];
};

type AccountWrite = {
  readonly id: string;
  readonly before: Row | undefined;
  readonly next: NextRow | null;
};

function createFunctionWrites(
  { audit, store, sessions, settings }: AccountParts,
  { generationChanges }: EndpointGeneration,
): FunctionWrites {
  const { accountBytesMax } = settings;

  function refusalOf(before: User | undefined, after: User): Problem | undefined {
    if (normalizeEmail(after.email) !== after.email) return emailFault;
    const closed = closedMembers(before, after);
    if (closed.length > 0) return { code: 'field_unpatchable', errors: closed };
    if (Buffer.byteLength(JSON.stringify(fieldsOfUser(after))) <= accountBytesMax) return undefined;
    const message = `the fields of an account take at most ${accountBytesMax} bytes (COMITY_ACCOUNT_BYTES_MAX)`;
    return { code: 'content_too_large', message };
  }

  return {
    prepare(call, before) {
      const given = parsed(call.do === 'create' ? call.fields : call.patch);
      const email = given === undefined ? undefined : normalizeEmail(String(given.email ?? ''));
      if (email === undefined) return call;
      const isMoved = before !== undefined && readUser(before.doc).email !== email;
      const content = { ...(isMoved ? { emailVerified: false } : {}), ...given, email };
      return call.do === 'create' ? { ...call, fields: content } : { ...call, patch: content };
    },
    async judge({ id, before, next }) {
      if (next === null) throw new Error('functions delete no accounts');
      const stood = before === undefined ? undefined : readUser(before.doc);
      const after = readUser(next.doc);
      const refused = refusalOf(stood, after);
      if (refused !== undefined) return { refused };
      if (stood === undefined) return { changes: [] };
      const isDisabled = after.disabled && !stood.disabled;
      const endsCodes = isDisabled || after.email !== stood.email;
      return {
        changes: [
          ...(isDisabled ? await sessions.endOfUser(id, null) : []),
          ...(endsCodes ? await removeCodes(store, id, mailCodePurposes, null) : []),
        ],
      };
    },
    consequences(writes, { actor: { id: actor, kind, keyId }, requestId }) {
      let isToldOtherwise = false;
      const entries = writes.flatMap(({ id, before, next }) => {
        if (next === null) return [];
        const stood = before === undefined ? undefined : readUser(before.doc);
        const after = readUser(next.doc);
        isToldOtherwise ||= stood !== undefined && mayBeToldOtherwise(stood, after);
        return factsOf(stood, after).map((told) =>
          audit.entry({
            ...{ ...told, actor, kind, subject: id, address: null },
            ...(keyId === undefined ? {} : { keyId }),
            ...(requestId === undefined ? {} : { requestId }),
          }),
        );
      });
      return [...entries, ...(isToldOtherwise ? generationChanges() : [])];
    },
  };
}

function parsed(given: unknown): Readonly<Record<string, unknown>> | undefined {
  const value: unknown = typeof given === 'string' ? JSON.parse(given) : given;
  return typeof value === 'object' && value !== null && 'email' in value ? { ...value } : undefined;
}

/** The members of Comity that the change of an administrator, or to one, would have. */
function closedMembers(before: User | undefined, after: User): readonly FieldError[] {
  if (!isAdministering(after) && (before === undefined || !isAdministering(before))) return [];
  const message = 'belongs to an administrator, whom functions neither make nor change';
  return closedNames
    .filter((name) =>
      before === undefined
        ? name === 'roles' || name === 'scopes'
        : JSON.stringify(before[name]) !== JSON.stringify(after[name]),
    )
    .map((name) => ({ pointer: `/${name}`, message }));
}

const openNames: ReadonlySet<string> = new Set(['id', 'name', 'createdAt', 'updatedAt']);
const closedNames = (Object.keys(ownAccountMembers) as (keyof User)[]).filter((name) => !openNames.has(name));

function isAdministering({ roles, scopes }: User): boolean {
  return roles.includes(administratorRole) || scopes.includes('admin');
}
