/**
 * Registration: one unit writes account, password, first session, verification code, its mail and audit entry, so that an account is complete or
 * absent. Only registration reveals that an address is taken. Where a login requires a verified address, the account gets no
 * session and no tokens.
 */
import { type TObject, Type } from 'typebox';
import { accountDefaults } from '../config/accounts.ts';
import type { Problem } from '../http/problem.ts';
import { actionResource, type Done } from '../kernel/action.ts';
import type { Ask, Resource } from '../kernel/resource.ts';
import { normalizeEmail } from '../mail/email.ts';
import { idFor } from '../model/id.ts';
import type { Change } from '../store/store.ts';
import type { AccountParts } from './account-parts.ts';
import {
  accountOutput,
  accountsTag,
  checkEmail,
  cookieSchema,
  emailFault,
  emailSchema,
  enteredOutput,
  exampleEmail,
  examplePassword,
  newPasswordFault,
  newPasswordSchema,
  oneCredential,
  tokensOutput,
} from './account-schemas.ts';
import { passwordChange, readUser, type User, type UserFields, usersTable } from './account-tables.ts';
import { type From, fromOf, originOf } from './audit.ts';
import {
  beginFirstPasskey,
  type FirstPasskey,
  firstPasskeySchema,
  takeFirstPasskey,
} from './second-factor/passkeys/first-passkey.ts';
import { passkeyRequestOutput } from './second-factor/passkeys/webauthn.ts';
import type { Opened } from './sessions/sessions.ts';
import type { NewAccounts } from './users/new-accounts.ts';
import { userRow } from './users/user-row.ts';

export type Registration = {
  readonly email: string;
  /** Absent: with a passkey. */
  readonly password?: string | undefined;
  readonly passkey?: Parameters<typeof takeFirstPasskey>[1] | undefined;
  readonly name?: string;
  /** Those of the application. */
  readonly fields?: Readonly<Record<string, unknown>>;
};

export type Registered =
  /** `opened` is null if the address must be verified first. */
  | {
      readonly ok: true;
      readonly user: User;
      readonly opened: Opened | null;
      /** Of the passkey. */
      readonly recoveryCodes?: readonly string[];
    }
  | { readonly ok: false; readonly problem: 'unique_taken' | 'unavailable' }
  | { readonly ok: false; readonly problem: 'validation_failed'; readonly faults: readonly Fault[] }
  /** By the fields or the hook of the application. */
  | { readonly ok: false; readonly problem: 'refused'; readonly refused: Problem };

export type Fault = { readonly pointer: string; readonly message: string };

/** @throws StoreUnavailable */
export type Register = (registration: Registration, how: How) => Promise<Registered>;

type How = From & { readonly cookie: boolean; readonly ask: Ask };

export function createRegister(parts: AccountParts): Register {
  const { store, newId, settings, findUser, hasher, mail, newAccounts } = parts;
  return async (registration, how) => {
    const email = normalizeEmail(registration.email);
    const { password } = registration;
    const passwordFault = password === undefined ? undefined : newPasswordFault(password, settings);
    if (email === undefined || passwordFault !== undefined) {
      return { ok: false, problem: 'validation_failed', faults: listFaults(email, passwordFault) };
    }
    // The commit would detect it as well; this saves a hash.
    if ((await findUser.byEmail(email)) !== undefined) return taken;
    const own = {
      ...(registration.name === undefined ? {} : { name: registration.name }),
      ...accountDefaults,
    };
    const passkey =
      registration.passkey === undefined ? undefined : await takeFirstPasskey(parts, registration.passkey);
    if (passkey !== undefined && 'problem' in passkey)
      return { ok: false, problem: 'refused', refused: { code: passkey.problem } };
    const id = passkey?.user ?? idFor('account', newId);
    const judged = await newAccounts.judge({ id, fields: { email, ...own } }, registration.fields ?? {});
    if ('refused' in judged) return { ok: false, problem: 'refused', refused: judged.refused };
    const hash = password === undefined ? null : await hasher.hash(password);
    const committed = await store.lines.change(undefined, async () => {
      if ((await passkey?.isUsed()) === true) return { refused: { code: 'challenge_invalid' } } as const;
      return newAccounts.commit(how.ask, store, judged, async ({ fields }) => {
        const made = await makeAccount(parts, { id, fields, hash, passkey }, how);
        const mails = mail.mint({ id, email: fields.email }, 'verification');
        return { changes: [...made.changes, ...mails], result: made.result };
      });
    });
    if ('refused' in committed) return refusalOf(committed.refused);
    mail.count('verification', id);
    return committed.result;
  };
}

const taken: Registered = { ok: false, problem: 'unique_taken' };

function refusalOf(refused: Problem): Registered {
  const isAddress = refused.code === 'unique_taken' && refused.errors?.[0]?.pointer === '/email';
  return isAddress ? taken : { ok: false, problem: 'refused', refused };
}

/** @param account.hash of its password; null: it has none */
export async function makeAccount(
  parts: AccountParts,
  account: {
    readonly id: string;
    readonly fields: UserFields;
    readonly hash: string | null;
    readonly passkey?: FirstPasskey | undefined;
  },
  how: How,
): Promise<{
  readonly changes: readonly Change[];
  readonly result: Extract<Registered, { readonly ok: true }>;
}> {
  const { sessions, audit, clock, settings, newAccounts } = parts;
  const { id, fields, hash, passkey } = account;
  const at = clock();
  const row = userRow(newAccounts.users, id, fields, at, at);
  const user = readUser(row.doc);
  const opened =
    settings.verifiedEmailRequired && !user.emailVerified
      ? null
      : await sessions.open(user, { cookie: how.cookie, at });
  const detail = opened === null ? {} : { session: opened.session };
  const changes: readonly Change[] = [
    { table: usersTable, id, expect: { absent: true }, next: row },
    passwordChange(id, undefined, hash, at),
    ...(passkey?.changes(at, how) ?? []),
    ...(opened?.changes ?? []),
    audit.entry({ type: 'account.registered', actor: id, subject: id, ...originOf(how), detail }),
  ];
  const codes = passkey === undefined ? {} : { recoveryCodes: passkey.recoveryCodes };
  return { changes, result: { ok: true, user, opened, ...codes } };
}

function listFaults(email: string | undefined, passwordFault: string | undefined): readonly Fault[] {
  const faults: Fault[] = [];
  if (email === undefined) faults.push(...(emailFault.errors ?? []));
  if (passwordFault !== undefined) faults.push({ pointer: '/password', message: passwordFault });
  return faults;
}

const nameCharactersMax = 200;
export const nameSchema = Type.Optional(Type.String({ minLength: 1, maxLength: nameCharactersMax }));

/** Values for the fields of the application, as far as their schemas tell; those without are left out unless they are required. */
function exampleFields(schema: TObject | undefined): Readonly<Record<string, unknown>> {
  const required = new Set(schema?.required ?? []);
  const values = Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const { examples, default: preset, const: only, enum: values, type } = property as Sampled;
    const [value] = [examples?.[0], preset, only, values?.[0]].filter((each) => each !== undefined);
    return [name, value ?? (required.has(name) ? samples.get(type) : undefined)] as const;
  });
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

type Sampled = {
  readonly examples?: readonly unknown[];
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly type?: unknown;
};

const samples: ReadonlyMap<unknown, unknown> = new Map<unknown, unknown>([
  ['string', 'text'],
  ['integer', 1],
  ['number', 1],
  ['boolean', true],
]);

/**
 * The content of a registration: with the fields of the application that some registration may set.
 * @param isRequired false: the content may be of a login, which needs none of them
 */
export function withFields<S extends TObject>(
  own: S,
  { registrable }: Pick<NewAccounts, 'registrable'>,
  isRequired = true,
): S {
  if (registrable === undefined) return own;
  // A default fills in what is left out.
  const isAsked = (name: string): boolean =>
    isRequired && !Object.hasOwn(registrable.properties[name] ?? {}, 'default');
  // The members that are not those of Comity are judged by NewAccounts.
  return Object.assign(Object.defineProperties({}, Object.getOwnPropertyDescriptors(registrable)), {
    properties: { ...own.properties, ...registrable.properties },
    required: [...(own.required ?? []), ...(registrable.required ?? []).filter(isAsked)],
  }) as unknown as S;
}

/**
 * POST /auth/register (§5.4): an account, and a session of it. Where addresses must be verified before a login, the
 * answer holds the account alone. With `cookie: true` it sets the session cookie besides, which no page of another site may ask for.
 */
export function registerResource(parts: AccountParts): Resource {
  const { base, settings, isCrossSite, addressOf, newAccounts } = parts;
  const register = createRegister(parts);
  // Otherwise administrators alone create accounts.
  const registrationOpen = settings.registration === 'open';
  const { passkeyRegistration: takesPasskeys } = settings;
  const password = newPasswordSchema(settings);
  const members = { name: nameSchema, cookie: cookieSchema };
  const own: TObject = takesPasskeys
    ? Type.Object({
        ...{ email: emailSchema, password: Type.Optional(password), ...members },
        passkey: Type.Optional(firstPasskeySchema),
      })
    : Type.Object({ email: emailSchema, password, ...members });
  const schema = withFields(own, newAccounts);
  return actionResource(
    {
      path: `${base}/auth/register`,
      tag: accountsTag,
      ignoresCredentials: true,
      id: 'register',
      summary: 'Create an account and log in to it',
      input: {
        name: 'Registration',
        schema,
        example: {
          ...{ email: exampleEmail, password: examplePassword, name: 'Ada' },
          ...exampleFields(newAccounts.registrable),
        },
      },
      ...registered(settings),
      ...(takesPasskeys ? { check: oneCredential } : {}),
      answers: 'created',
      codes: [
        ...(registrationOpen ? [] : (['forbidden'] as const)),
        ...(['cross_site_request', 'unique_taken'] as const),
        ...(takesPasskeys ? (['challenge_invalid', 'passkey_invalid'] as const) : []),
        ...(newAccounts.isPlain
          ? []
          : (['field_missing', 'field_unpatchable', 'reference_missing'] as const)),
      ],
      handler: async (ask, content) => {
        const { cookie = false, email, password, passkey, name, ...fields } = content as RegistrationContent;
        if (!registrationOpen) return { refused: { code: 'forbidden', message: 'registration is closed' } };
        if (cookie && isCrossSite(ask.request)) return { refused: { code: 'cross_site_request' } };
        const registration = { email, password, passkey, ...(name === undefined ? {} : { name }), fields };
        const how = { cookie, ...fromOf(ask.request, addressOf), ask };
        return answer(base, await register(registration, how));
      },
    },
    settings,
  );
}

type RegistrationContent = Omit<Registration, 'fields'> & { readonly cookie?: boolean };

/** POST /auth/register/passkey-options (§5.8.11): the account of the options exists once the passkey registers it. */
export function registerPasskeyResource(parts: AccountParts): Resource {
  const { base, settings, newId } = parts;
  return actionResource(
    {
      path: `${base}/auth/register/passkey-options`,
      tag: accountsTag,
      ignoresCredentials: true,
      id: 'beginPasskeyRegistration',
      summary: 'Get the options for a passkey that registers an account',
      description: 'Does not tell whether the address has an account.',
      input: {
        name: 'PasskeyRegistrationRequest',
        schema: Type.Object({ email: emailSchema, name: nameSchema }),
        example: { email: exampleEmail, name: 'Ada' },
      },
      output: passkeyRequestOutput,
      codes: [],
      check: checkEmail,
      handler: async (_ask, { email, name }) => {
        const user = {
          id: idFor('account', newId),
          email: normalizeEmail(email) ?? email,
          ...(name === undefined ? {} : { name: String(name) }),
        };
        return { content: { ...(await beginFirstPasskey(parts, user)) } };
      },
    },
    settings,
  );
}

function registered({
  verifiedEmailRequired,
  passkeyRegistration,
}: Pick<AccountParts['settings'], 'verifiedEmailRequired' | 'passkeyRegistration'>) {
  if (verifiedEmailRequired) {
    return {
      output: accountOutput,
      description:
        'Sends a mail that verifies the address. Logins to the account are refused until it is verified.',
    };
  }
  return {
    output: passkeyRegistration ? enteredOutput : tokensOutput,
    fields: ['Set-Cookie'],
    description: 'Sends a mail that verifies the address, if a mail server is configured.',
  } as const;
}

function answer(base: string, registered: Registered): Done {
  if (registered.ok) {
    const { user, opened, recoveryCodes } = registered;
    const created = `${base}/users/${user.id}`;
    const codes = recoveryCodes === undefined ? {} : { recoveryCodes };
    if (opened === null) return { content: { user: { id: user.id, email: user.email }, ...codes }, created };
    return { content: { ...opened.content, ...codes }, created, fields: opened.fields };
  }
  switch (registered.problem) {
    case 'unique_taken':
      return {
        refused: {
          code: 'unique_taken',
          message: 'email is already in use',
          errors: [{ pointer: '/email', message: 'already in use' }],
        },
      };
    case 'validation_failed':
      return { refused: { code: 'validation_failed', errors: registered.faults } };
    case 'refused':
      return { refused: registered.refused };
    case 'unavailable':
      return { refused: { code: 'unavailable' } };
  }
}
