/** `comity events`: posts an event with a given object or a sample, and lists the types of events. */

import { isRecord } from '../../config/inspection.ts';
import type { EventType } from '../../webhooks/sending/event-types/event-types.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import type { ServerClient } from '../server-client.ts';
import { columns } from '../table.ts';
import type { Call, Noun, Printed } from './remote-command.ts';

export const events: Noun = {
  name: 'events',
  description: 'post events to a running server, and list the types of events',
  key: 'webhooks',
  commands: [
    {
      name: 'types',
      description: 'list the types of events; --json shows their schemas and samples',
      request: 'GET /event-types',
      lists: 'all',
      table: columns<ShownEventType>({ TYPE: 'type', DESCRIPTION: 'description' }),
    },
    {
      name: 'trigger',
      description: 'post an event, and print its id',
      arguments: [['<type>', 'its type, such as products.created or invoice.paid']],
      options: [
        ['--data <json>', 'its object: JSON, @file, or - for stdin (a sample)'],
        [
          '--set <path=value>',
          'set a member of the object, such as price=10; repeatable',
          { parse: (written, before: readonly string[] = []) => [...before, written] },
        ],
        ['--id <id>', 'its id; a repeated one is the same event', { member: 'id' }],
        ['--tenant <tenant>', 'its tenant', { member: 'tenant' }],
      ],
      run: triggerEvent,
    },
  ],
};

/** `sample` is a whole event. */
type ShownEventType = Pick<EventType, 'type' | 'description'> & {
  readonly sample: { readonly data?: { readonly object?: unknown } } | null;
};

type Members = Readonly<Record<string, unknown>>;

type TriggerArguments = { readonly data?: string; readonly set?: readonly string[] };

async function triggerEvent({
  terminal,
  server,
  names: [type = ''],
  options: { data, set = [] },
  members,
}: Call<TriggerArguments>): Promise<Printed> {
  const { readObject } = await import('./json-argument.ts');
  const given = data === undefined ? undefined : await readObject(terminal, '--data', data);
  const object = set.reduce(withMember, given ?? (await sampleOf(server(), type)));
  const json = await server().ask('POST', '/events', { json: { ...members, type, data: { object } } });
  return { json, text: (json as { readonly id: string }).id };
}

async function sampleOf(server: ServerClient, type: string): Promise<Members> {
  const subject = `sample of ${type}; --data sets the object of the event`;
  const path = `/event-types/${encodeURIComponent(type)}`;
  const { sample } = (await server.ask('GET', path, { subject })) as ShownEventType;
  const object = sample?.data?.object;
  if (isRecord(object)) return object;
  throw new CommandFailure(`there is no ${subject}`);
}

/**
 * Replaces one member of the object, at any depth: `--set path=value`.
 * @param written `price=10`, `customer.name=Ada`; the value is JSON if it parses, else text
 * @returns a copy with the member
 */
export function withMember(object: Members, written: string): Members {
  const equals = written.indexOf('=');
  const names = written.slice(0, Math.max(0, equals)).split('.');
  if (equals < 1 || names.some((name) => name === '')) {
    const message = `--set must be like price=10 or customer.name=Ada, not ${JSON.stringify(written)}`;
    throw new CommandFailure(message, { exitCode: exitCodes.usage });
  }
  return put(object, names, valueIn(written.slice(equals + 1)));
}

function put(object: Members, [name = '', ...rest]: readonly string[], value: unknown): Members {
  const inner = Object.hasOwn(object, name) ? object[name] : undefined;
  const next = rest.length === 0 ? value : put(isRecord(inner) ? inner : {}, rest, value);
  // Entries, because a member may be called "__proto__".
  return Object.fromEntries([...Object.entries(object).filter(([key]) => key !== name), [name, next]]);
}

function valueIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
