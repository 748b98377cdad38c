/**
 * Every resource of a program that was never started, in the order of its document: the declarations are those that answer requests, and
 * what their handlers would work with is missing.
 */
import { auditResources } from '../../src/accounts/audit.ts';
import { emailResources } from '../../src/accounts/change-email.ts';
import { invitationResources } from '../../src/accounts/invitations.ts';
import { keyResources } from '../../src/accounts/keys/key-routes.ts';
import { loginResources } from '../../src/accounts/login.ts';
import { mailLoginResources } from '../../src/accounts/mail-login.ts';
import { meResource } from '../../src/accounts/me.ts';
import { oauthResources } from '../../src/accounts/oauth/oauth-routes.ts';
import { passwordResetResources, passwordResource } from '../../src/accounts/passwords/set-password.ts';
import { portalLinkResources, portalSessionResource } from '../../src/accounts/portal/portal-routes.ts';
import { refreshResource } from '../../src/accounts/refresh.ts';
import { registerPasskeyResource, registerResource } from '../../src/accounts/register.ts';
import { viewResources } from '../../src/accounts/saved-views.ts';
import { resetFactorResource } from '../../src/accounts/second-factor/change-factor.ts';
import { factorResources } from '../../src/accounts/second-factor/factor-routes.ts';
import { passkeyLoginResources } from '../../src/accounts/second-factor/passkeys/passkey-login.ts';
import { passkeyResources } from '../../src/accounts/second-factor/passkeys/passkey-routes.ts';
import { logoutResource, userSessionResources } from '../../src/accounts/sessions/session-routes.ts';
import { jwksResource } from '../../src/accounts/tokens/signing-keys.ts';
import { userResources } from '../../src/accounts/users/user-routes.ts';
import { verificationResources } from '../../src/accounts/verify-email.ts';
import { backupResources } from '../../src/backups/backups.ts';
import type { ResolvedAccounts } from '../../src/config/accounts.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import type { DeclaredSender } from '../../src/config/senders.ts';
import type { Settings } from '../../src/config/settings.ts';
import { holdResources } from '../../src/hold/hold.ts';
import { jobResources } from '../../src/jobs/job-routes.ts';
import type { Resource } from '../../src/kernel/resource.ts';
import { mailResources } from '../../src/mail/mails.ts';
import type { Collection } from '../../src/model/collection.ts';
import { realtimeResources } from '../../src/realtime/realtime-routes.ts';
import type { ServedCollection } from '../../src/resources/collection/serve-collection.ts';
import type { Serving } from '../../src/resources/collection/served-collection.ts';
import { accessResource } from '../../src/resources/program/access-routes.ts';
import {
  connectionsResource,
  metaResources,
  slowListResource,
  storeResource,
} from '../../src/resources/program/meta-routes.ts';
import { programResources } from '../../src/resources/program/program-routes.ts';
import { createRoutes } from '../../src/resources/routes.ts';
import { replayEventsResource, subscriberResources } from '../../src/subscribers/subscriber-routes.ts';
import { receivedResources } from '../../src/webhooks/receiving/received/received-routes.ts';
import { receiveResources } from '../../src/webhooks/receiving/receiving.ts';
import { senderResources } from '../../src/webhooks/receiving/sender-routes.ts';
import { deliveryResources } from '../../src/webhooks/sending/delivery-routes.ts';
import { endpointResources } from '../../src/webhooks/sending/endpoints/endpoint-routes.ts';
import { type EventTypes, eventTypeResources } from '../../src/webhooks/sending/event-types/event-types.ts';
import { recoveryResources } from '../../src/webhooks/sending/recovery/recover-endpoint.ts';
import { postedEvents } from '../../src/webhooks/sending/sending.ts';
import { plainAccounts, plainNewAccounts } from '../accounts/fixtures/plain-accounts.ts';

export type ProgramSetting = {
  readonly collections: ReadonlyMap<string, Collection>;
  /** Undefined: it keeps no accounts. */
  readonly accounts: AccountsSetting | undefined;
  /** Undefined: it sends no webhooks. */
  readonly eventTypes: EventTypes | undefined;
  /** Undefined: it receives no webhooks. */
  readonly receiving: ReceivingSetting | undefined;
};

/** Where a program differs from one with default settings. */
export type AccountsSetting = Partial<
  Pick<Settings, 'registration' | 'verifiedEmailRequired' | 'passkeyRegistration'>
> & {
  readonly passwordless?: ResolvedAccounts['passwordless'];
  /** Names of the OpenID providers. */
  readonly providers: readonly string[];
};

export type ReceivingSetting = Partial<Pick<Settings, 'receivedBytesMax' | 'receivedReplayMax'>> & {
  readonly senders: ReadonlyMap<string, DeclaredSender>;
};

const base = '/api/v1';
const { settings } = loadSettings({});

/** Stands for whatever a handler would call: each member of it, and each result of a call, is the same again. */
const missing: never = new Proxy(() => undefined, {
  get: (_target, name) => {
    if (name === Symbol.toPrimitive) return () => 0;
    return name === 'then' || typeof name === 'symbol' ? undefined : missing;
  },
  apply: () => missing,
}) as never;

/** Options of any resource: settings, and what is missing. */
function optionsWith(given: object): never {
  return new Proxy(
    { settings, ...settings, base, limits: settings, ...given },
    {
      get: (target, name) =>
        name in target || typeof name === 'symbol' ? Reflect.get(target, name) : missing,
    },
  ) as never;
}

export function resourcesOf({
  collections,
  accounts,
  eventTypes,
  receiving,
}: ProgramSetting): readonly Resource[] {
  const routes = createRoutes({
    settings,
    ...{
      base,
      collections,
      store: missing,
      newId: missing,
      clock: missing,
      turns: missing,
      connections: missing,
      mac: missing,
      addressOf: missing,
    },
    builtIn: (serving) => [
      ...(accounts === undefined ? [] : accountResources(accounts, serving)),
      ...(eventTypes === undefined ? [] : sendingResources(eventTypes, serving)),
      ...(receiving === undefined ? [] : receivingResources(receiving, serving)),
      mailResources(serving),
      ...holdResources(optionsWith({}), base),
    ],
    ...(eventTypes === undefined
      ? {}
      : { postedEvents: (serving) => postedEvents(optionsWith({ eventTypes }), serving, missing) }),
  });
  const realtime = realtimeResources(optionsWith({ collections: [...collections.values()] }));
  const program = programResources(optionsWith({ assets: [], metrics: { contentType: 'text/plain' } }));
  const meta = [
    ...metaResources(optionsWith({}), base, optionsWith({})),
    storeResource(optionsWith({}), base, [], missing),
    ...backupResources(optionsWith({}), base, missing, missing),
    accessResource(optionsWith({ collections: new Map([...collections, ['users', optionsWith({})]]) })),
    slowListResource(base, settings, missing),
    connectionsResource(base, settings, missing),
  ];
  return [...routes, ...realtime, ...meta, ...program];
}

function accountResources(
  { providers, passwordless = plainAccounts.passwordless, ...differing }: AccountsSetting,
  serving: Serving,
): readonly (Resource | ServedCollection)[] {
  const own = optionsWith({
    settings: { ...settings, ...differing },
    accounts: { ...plainAccounts, passwordless },
    newAccounts: plainNewAccounts,
  });
  const named = new Map(providers.map((name) => [name, missing]));
  return [
    registerResource(own),
    ...(differing.passkeyRegistration === true ? [registerPasskeyResource(own)] : []),
    ...loginResources(own),
    refreshResource(own),
    logoutResource(own),
    meResource(own),
    ...factorResources(own),
    ...passkeyResources(own),
    ...passkeyLoginResources(own),
    ...mailLoginResources(own),
    resetFactorResource(own),
    ...userSessionResources(own),
    passwordResource(own),
    ...verificationResources(own),
    ...emailResources(own),
    ...passwordResetResources(own),
    ...oauthResources(own, named, new Set()),
    ...invitationResources(own, missing),
    userResources(own, missing, serving),
    keyResources(own, missing, serving),
    auditResources(serving),
    viewResources(serving),
    portalLinkResources(own, serving),
    portalSessionResource(own),
    jwksResource([]),
  ];
}

function sendingResources(
  eventTypes: EventTypes,
  serving: Serving,
): readonly (Resource | ServedCollection)[] {
  return [
    endpointResources(optionsWith({}), serving),
    deliveryResources(optionsWith({}), serving),
    recoveryResources(serving),
    ...eventTypeResources(eventTypes, `${base}/event-types`, serving.settings),
  ];
}

function receivingResources(
  receiving: ReceivingSetting,
  serving: Serving,
): readonly (Resource | ServedCollection)[] {
  const { senders, ...differing } = receiving;
  const own = optionsWith({ settings: { ...settings, ...differing }, senders });
  const functions = optionsWith({ subscribers: new Map(), jobs: new Map() });
  return [
    receivedResources(own, senders, serving),
    ...receiveResources(own, own, missing, missing),
    ...senderResources(own, own, missing),
    ...subscriberResources(functions, functions),
    replayEventsResource(functions, functions, missing, missing),
    ...jobResources(functions, functions, missing),
  ];
}
