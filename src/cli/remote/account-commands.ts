/** `comity users`: accounts, found by their id or e-mail address. `comity keys`: API keys; revoking one names what was made with it. */
import type { User } from '../../accounts/account-tables.ts';
import type { Key } from '../../accounts/keys/key-rows.ts';
import { commaSeparated } from '../../config/refusals.ts';
import { settings } from '../../config/settings.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import type { Argument, OptionRow } from '../declare-command.ts';
import { CommandFailure, usageFailure } from '../failure.ts';
import { wholeNumber } from '../option-values.ts';
import type { ServerClient } from '../server-client.ts';
import { columns, lines, printable } from '../table.ts';
import type { Call, Noun, Printed } from './run-remote.ts';

const account: Argument = ['<account>', 'id or e-mail address'];
const passwordOption: OptionRow = [
  '--password-stdin',
  'read the password from stdin instead of generating one',
];
const accountOptions: readonly OptionRow[] = [
  ['--name <name>', 'its display name', { member: 'name' }],
  ['--role <role...>', 'roles; "administrator" may do everything', { member: 'roles' }],
  ['--scope <scope...>', 'scopes (read write)', { member: 'scopes' }],
  ['--tenant <tenant>', 'the tenant that it belongs to', { member: 'tenant' }],
  [
    '--field <name=value...>',
    'fields of the application; name:=value takes JSON, such as level:=3',
    { parse: withField },
  ],
];

export const users: Noun = {
  name: 'users',
  description: 'create, change and delete accounts on a running server',
  key: 'administrator',
  thing: 'account',
  commands: [
    {
      name: 'list',
      description: 'list accounts, the newest first',
      options: [
        ['--search <words>', 'only those whose e-mail address or name contains the words', { member: 'q' }],
      ],
      request: 'GET /users',
      lists: 'newest',
      table: columns<User>({
        ID: 'id',
        EMAIL: 'email',
        NAME: 'name',
        ROLES: 'roles',
        STATE: ({ disabled }) => (disabled ? 'disabled' : ''),
        CREATED: ({ createdAt }) => createdAt.slice(0, 10),
      }),
      none: 'No accounts.',
    },
    {
      name: 'show',
      description: 'show one account',
      arguments: [account],
      finds: findAccount,
      print: accountText,
    },
    {
      name: 'create',
      description: 'create an account, with a password that is shown once',
      arguments: [['<email>', 'its e-mail address']],
      options: [
        ...accountOptions,
        passwordOption,
        ['--no-password', 'no password: log in only by a mailed code or a provider'],
      ],
      run: createUser,
    },
    {
      name: 'set-password',
      description: 'set a new password, which ends every session of the account',
      arguments: [account],
      options: [passwordOption],
      run: setPassword,
    },
    {
      name: 'disable',
      description: 'refuse every credential of an account from now on',
      arguments: [account],
      finds: findAccount,
      request: 'PATCH /users/{id}',
      content: { disabled: true },
      print: accountText,
    },
    {
      name: 'enable',
      description: 'accept the password and the keys of an account again',
      arguments: [account],
      finds: findAccount,
      request: 'PATCH /users/{id}',
      content: { disabled: false },
      print: accountText,
    },
    {
      name: 'set-roles',
      description: 'replace the roles of an account',
      arguments: [account, ['[roles...]', 'such as "administrator" and those that access rules name']],
      options: [['--none', 'remove all roles']],
      finds: findAccount,
      request: 'PATCH /users/{id}',
      content: ({ names: [, ...roles], options: { none = false } }: Call<{ readonly none?: boolean }>) => {
        if ((roles.length === 0) !== none) throw usageFailure('name the roles of the account, or use --none');
        return { roles: [...new Set(roles)] };
      },
      print: accountText,
    },
    {
      name: 'set-fields',
      description: 'change fields of the application; name:=null removes one',
      arguments: [account, ['<fields...>', 'such as organisationId=lighthouse level:=3']],
      finds: findAccount,
      request: 'PATCH /users/{id}',
      content: ownFields,
      print: accountText,
    },
    {
      name: 'delete',
      description: 'delete an account with its password, sessions and keys',
      arguments: [account],
      finds: findAccount,
      confirms: ({ email }: User) => `Delete ${email} with its password, sessions and keys?`,
      done: 'deleted',
      request: 'DELETE /users/{id}',
      print: (_, { found: { id, email } }: Call<object, User>) => ({
        json: { id, email, deleted: true },
        isLine: true,
        text: `${email} (${id}) was deleted.`,
      }),
    },
    {
      name: 'invite',
      description:
        'mail a person a link that sets a password or a passkey, of a new account or of one that nobody has entered',
      arguments: [['<email>', 'the e-mail address']],
      options: accountOptions,
      request: 'POST /auth/invite',
      content: ({ options, members, names }: Call<CreateArguments>) => ({
        ...{ ...options.field, ...members },
        email: names[0],
      }),
      print: ({ id, email }: User) => ({
        json: { id, email, invited: true },
        isLine: true,
        text: `${email} (${id}) was invited.`,
      }),
    },
    {
      name: 'reset-second-factor',
      description: 'remove the second factor of an account, which ends every session of it',
      arguments: [account],
      finds: findAccount,
      confirms: ({ email }: User) => `Remove the second factor of ${email} and end its sessions?`,
      done: 'removed',
      request: 'POST /users/{id}/reset-second-factor',
      print: (_, { found: { id, email } }: Call<object, User>) => ({
        json: { id, email, secondFactor: false },
        isLine: true,
        text: `${email} (${id}) has no second factor and no sessions.`,
      }),
    },
  ],
};

async function findAccount({ server, names: [name = ''] }: Pick<Call, 'server' | 'names'>): Promise<User> {
  const subject = `account ${name}`;
  if (!name.includes('@'))
    return (await server().ask('GET', `/users/${encodeURIComponent(name)}`, { subject })) as User;
  const { normalizeEmail } = await import('../../mail/email.ts');
  const client = server();
  const email = normalizeEmail(name);
  const found =
    email === undefined
      ? undefined
      : (await client.list<User>(`/users?email=${encodeURIComponent(email)}`, 1)).items[0];
  if (found === undefined) throw new CommandFailure(`there is no ${subject}`);
  return found;
}

const ownLines = lines<User>({
  id: 'id',
  email: ({ email, emailVerified }) => `${email}${emailVerified ? '' : ' (not verified)'}`,
  name: 'name',
  roles: ({ roles }) => roles.join(', ') || 'none',
  scopes: ({ scopes }) => scopes.join(', ') || 'none',
  tenant: 'tenant',
  disabled: ({ disabled }) => (disabled ? 'yes' : 'no'),
  created: 'createdAt',
  changed: 'updatedAt',
});

async function accountText(user: User): Promise<string> {
  const { fieldsOfUser } = await import('../../accounts/account-tables.ts');
  const fields = Object.entries(fieldsOfUser(user)).map(
    ([label, value]) =>
      `${label.padEnd('disabled'.length)}  ${printable(typeof value === 'string' ? value : JSON.stringify(value))}`,
  );
  return [ownLines(user), ...fields].join('\n');
}

type PasswordArguments = {
  readonly passwordStdin?: boolean;
  /** False for `--no-password`. */
  readonly password?: boolean;
};

type CreateArguments = PasswordArguments & { readonly field?: object };

/** Account and password are two requests: if the second fails, the account has no password, and `set-password` tries again. */
async function createUser(call: Call<CreateArguments>): Promise<Printed> {
  const { terminal, options, members, names } = call;
  const server = call.server();
  const { password, isMade } = await passwordOf(call);
  const json = { ...options.field, ...members, email: names[0] };
  const account = (await server.ask('POST', '/users', { json })) as User;
  try {
    if (password !== undefined)
      await server.ask('POST', `/users/${account.id}/password`, { json: { password } });
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    const message = `${account.email} was created, but has no password yet: ${error.message}`;
    throw new CommandFailure(message, { cause: error });
  }
  const text = await accountText(account);
  if (!isMade) return { json: account, text };
  terminal.err('comity: the password was generated here and is shown only once');
  return { json: { ...account, password }, text: `${text}\npassword  ${password}` };
}

async function setPassword(call: Call<PasswordArguments>): Promise<Printed> {
  const { terminal, names } = call;
  const server = call.server();
  const { password, isMade } = await passwordOf(call);
  const { id, email } = await findAccount(call);
  await server.ask('POST', `/users/${id}/password`, { json: { password }, subject: `account ${names[0]}` });
  const shown = isMade ? '; it was generated here and is shown only once' : '';
  terminal.err(`comity: ${email} has a new password and no sessions${shown}`);
  return isMade
    ? { json: { id, email, password }, isLine: true, text: password }
    : { json: { id, email }, isLine: true };
}

/** The password of stdin, a generated one of 120 bits, or none. */
async function passwordOf({ terminal, options }: Call<PasswordArguments>) {
  if (options.passwordStdin === true) {
    const { stdinLine } = await import('../terminal.ts');
    const atTerminal = '--password-stdin reads a pipe; without it a password is generated and shown';
    return { password: await stdinLine(terminal.stdin, 'password', atTerminal), isMade: false } as const;
  }
  if (options.password === false) return { password: undefined, isMade: false } as const;
  const octets = crypto.getRandomValues(Buffer.alloc(15));
  return { password: octets.toString('base64url'), isMade: true } as const;
}

const assignment = /^([^:=]+)(:?=)(.*)$/s;

/** @throws CommandFailure for anything but `name=value` and `name:=JSON` */
function withField(written: string, before: object = {}): object {
  const [, name = '', sign, value = ''] = assignment.exec(written) ?? [];
  try {
    if (name !== '') return { ...before, [name]: sign === '=' ? value : JSON.parse(value) };
  } catch {
    // Refused below.
  }
  throw usageFailure(
    `a field must be name=value, or name:=JSON such as level:=3, not ${JSON.stringify(written)}`,
  );
}

/** Fields that the application declares, and no member of Comity. */
async function ownFields({ names: [, ...written] }: Call): Promise<object> {
  const { ownAccountMembers } = await import('../../accounts/account-tables.ts');
  const fields = written.reduce<object>((before, each) => withField(each, before), {});
  const own = Object.keys(fields).find((field) => Object.hasOwn(ownAccountMembers, field));
  if (own === undefined) return fields;
  throw usageFailure(`${own} is not a field of the application; see comity users --help`);
}

const keyId: Argument = ['<id>', 'id of the key, key_...'];

export const keys: Noun = {
  name: 'keys',
  description: 'create, rotate and revoke API keys on a running server',
  key: 'administrator',
  thing: 'key',
  commands: [
    {
      name: 'list',
      description: 'list all keys, the newest first',
      request: 'GET /keys',
      lists: 'newest',
      table: columns<Key>({
        ID: 'id',
        NAME: 'name',
        KEY: ({ prefix }) => `${prefix}...`,
        SCOPES: 'scopes',
        EXPIRES: ({ expiresAt = 'never' }) => expiresAt,
        'LAST USED': ({ lastUsedAt = 'never' }) => lastUsedAt,
        CREATED: ({ createdAt }) => createdAt.slice(0, 10),
      }),
      none: 'No keys.',
    },
    {
      name: 'create',
      description: 'create a key, and print it once',
      arguments: [['<name>', 'what it is for']],
      options: [
        ['--publishable', 'a key that may be public, such as in a page: it can only read'],
        ['--scope <scope...>', 'scopes (read write)', { member: 'scopes' }],
        [
          '--expires <time>',
          'when it ends: 30d, or a date (never)',
          { member: 'expiresAt', parse: futureTime },
        ],
        ['--tunnel-allow <hosts>', 'hosts that it may tunnel to: a.example,*.b.example (all)'],
        ['--tunnel-deny <hosts>', 'hosts that it may not, even if allowed (none)'],
        [
          '--tunnel-mode <mode>',
          'report: refusals by the lists are only logged (enforce)',
          { choices: ['enforce', 'report'] },
        ],
      ],
      request: 'POST /keys',
      content: ({ names: [name], options }: Call<KeyArguments>) => ({
        name,
        kind: options.publishable === true ? 'publishable' : 'secret',
        tunnel: tunnelOf(options),
      }),
      print: newKey,
    },
    {
      name: 'rotate',
      description: 'replace the text of the key, and print the new one once',
      arguments: [keyId],
      options: [
        [
          '--overlap <seconds>',
          'how long the old text stays valid (0)',
          // The most that any server accepts.
          { member: 'overlapSeconds', parse: wholeNumber(0, settings.keyOverlapSecondsMax.most) },
        ],
      ],
      request: 'POST /keys/{id}/rotate',
      print: newKey,
    },
    {
      name: 'revoke',
      description: 'revoke a key, and the keys made with it, immediately',
      arguments: [keyId],
      options: [['--disable-endpoints', 'disable the webhook endpoints that were made with it']],
      finds: 'GET /keys/{id}',
      confirms: (key: Key) => `Revoke ${shown(key)}?`,
      done: 'revoked',
      run: revokeKey,
    },
  ],
};

/** Prints only the key on stdout, for `KEY=$(...)`. */
function newKey({ key, id, name, scopes, expiresAt }: Key & { readonly key: string }): Partial<Printed> {
  const end = expiresAt === undefined ? 'does not expire' : `valid until ${expiresAt}`;
  return {
    text: key,
    notes: [
      `${id} (${printable(name)}): ${scopes.join(', ') || 'no scopes'}, ${end}.`,
      'the key is shown only once; keep it now',
    ],
  };
}

const dayMs = 86_400_000;
const isoDate = /^\d{4}-/;
const daysFromNow = /^([1-9][0-9]{0,4})d$/;

/** `30d` from now, or an ISO 8601 date or time. */
function futureTime(text: string): string {
  const days = daysFromNow.exec(text)?.[1];
  const at = days === undefined ? Date.parse(text) : Date.now() + Number(days) * dayMs;
  if (Number.isNaN(at) || (days === undefined && !isoDate.test(text))) {
    throw usageFailure(`--expires must be like 30d or 2030-12-31, not ${JSON.stringify(text)}`);
  }
  return new Date(at).toISOString();
}

type KeyArguments = {
  readonly publishable?: boolean;
  readonly tunnelAllow?: string;
  readonly tunnelDeny?: string;
  readonly tunnelMode?: 'enforce' | 'report';
};

/** Without an option for hosts the key has no list. An empty `--tunnel-allow` allows none. */
function tunnelOf({ tunnelAllow, tunnelDeny, tunnelMode: mode }: KeyArguments): object | undefined {
  if (tunnelAllow === undefined && tunnelDeny === undefined) {
    if (mode === undefined) return undefined;
    throw usageFailure(
      '--tunnel-mode applies to the lists --tunnel-allow and --tunnel-deny; give at least one of them',
    );
  }
  const listOf = (hosts: string | undefined) => (hosts === undefined ? undefined : commaSeparated(hosts));
  return { mode, allow: listOf(tunnelAllow), deny: listOf(tunnelDeny) };
}

function shown({ id, name }: Key): string {
  return `${id} (${printable(name)})`;
}

/** Bound of the keys and of the endpoints of each key that are listed. */
const madeMax = 10_000;

/**
 * Ends a key, and every key that was made with it. Endpoints that were made with them stay, since they belong to their owner; the command
 * names them, or disables them with `--disable-endpoints`.
 */
async function revokeKey({
  server: open,
  found: key,
  options: { disableEndpoints: disables = false },
}: Call<{ readonly disableEndpoints?: boolean }, Key>): Promise<Printed> {
  const server = open();
  // Listed before the revocation, which removes the record of which keys were made with this one.
  const keys = await madeWith(server, key.id);
  await server.ask('DELETE', `/keys/${key.id}`, { subject: `key ${key.id}` });
  const endpoints: Endpoint[] = [];
  for (const id of keys) endpoints.push(...(await endpointsOf(server, id)));
  const enabled = endpoints.filter(({ status }) => status === 'enabled');
  for (const { id } of disables ? enabled : [])
    await server.ask('PATCH', `/endpoints/${id}`, {
      json: { status: 'disabled' },
      subject: `endpoint ${id}`,
    });
  const fate = disables ? 'is disabled now' : 'is still sent to';
  return {
    json: {
      ...{ id: key.id, name: key.name, revoked: true },
      endpoints: endpoints.map(({ id, url }) => ({ id, url })),
      endpointsDisabled: disables ? enabled.length : 0,
    },
    isLine: true,
    text: [
      `${shown(key)} was revoked.`,
      ...enabled.map(({ id, url }) => `${id} (${printable(url)}) was made with it and ${fate}.`),
    ].join('\n'),
    notes: enabled.length > 0 && !disables ? ['--disable-endpoints would disable them'] : [],
  };
}

/** The key and all keys that were made with it, directly or indirectly. */
async function madeWith(server: ServerClient, key: string): Promise<readonly string[]> {
  const found = [key];
  for (const maker of found) {
    const { items } = await server.list<Key>(`/keys?madeBy=${encodeURIComponent(maker)}`, madeMax);
    found.push(...items.map(({ id }) => id).filter((id) => !found.includes(id)));
    if (found.length > madeMax) break;
  }
  return found;
}

async function endpointsOf(server: ServerClient, key: string): Promise<readonly Endpoint[]> {
  return (await server.list<Endpoint>(`/endpoints?madeBy=${encodeURIComponent(key)}`, madeMax)).items;
}
