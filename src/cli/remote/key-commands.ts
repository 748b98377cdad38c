/** `comity keys`: API keys; revoking one names what was made with it. */
import type { Key } from '../../accounts/keys/key-rows.ts';
import { commaSeparated } from '../../config/refusals.ts';
import { settings } from '../../config/settings.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import type { Argument } from '../declare-command.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { wholeNumber } from '../option-values.ts';
import type { ServerClient } from '../server-client.ts';
import { columns, printable } from '../table.ts';
import type { Call, Noun, Printed } from './remote-command.ts';

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
      content: ({ names: [name], options }: Call<CreateArguments>) => ({
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
    const message = `--expires must be like 30d or 2030-12-31, not ${JSON.stringify(text)}`;
    throw new CommandFailure(message, { exitCode: exitCodes.usage });
  }
  return new Date(at).toISOString();
}

type CreateArguments = {
  readonly publishable?: boolean;
  readonly tunnelAllow?: string;
  readonly tunnelDeny?: string;
  readonly tunnelMode?: 'enforce' | 'report';
};

/** Without an option for hosts the key has no list. An empty `--tunnel-allow` allows none. */
function tunnelOf({ tunnelAllow, tunnelDeny, tunnelMode: mode }: CreateArguments): object | undefined {
  if (tunnelAllow === undefined && tunnelDeny === undefined) {
    if (mode === undefined) return undefined;
    const message =
      '--tunnel-mode applies to the lists --tunnel-allow and --tunnel-deny; give at least one of them';
    throw new CommandFailure(message, { exitCode: exitCodes.usage });
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
