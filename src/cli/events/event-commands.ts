/** `comity events trigger`, which posts an event with a given object or a sample, and `comity events types`. */

import { readFile } from 'node:fs/promises';
import { text as textOf } from 'node:stream/consumers';
import { CommandFailure, exitCodes } from '../failure.ts';
import { openWebhookServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import { tableText } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export type TriggerArguments = ServerArguments & {
  /** JSON, `@file`, or `-` for stdin. */
  readonly data?: string;
  readonly set?: readonly string[];
  readonly id?: string;
  readonly tenant?: string;
};

type Members = Readonly<Record<string, unknown>>;

type Posted = { readonly id: string; readonly type: string };

export async function triggerEvent(
  terminal: Terminal,
  type: string,
  options: TriggerArguments,
  json: boolean,
): Promise<number> {
  const { data, set = [], id, tenant } = options;
  const given = data === undefined ? undefined : parsed(await written(terminal, data));
  const server = openWebhookServer(terminal, options);
  const object = set.reduce(withMember, given ?? (await sampleOf(server, type)));
  const posted = (await server.ask('POST', '/events', {
    json: {
      ...{ type, data: { object } },
      ...(id === undefined ? {} : { id }),
      ...(tenant === undefined ? {} : { tenant }),
    },
  })) as Posted;
  terminal.out(json ? JSON.stringify(posted, undefined, 2) : posted.id);
  return exitCodes.done;
}

async function sampleOf(server: ServerClient, type: string): Promise<Members> {
  const subject = `sample of ${type}; --data sets the object of the event`;
  const known = (await server.ask('GET', `/event-types/${encodeURIComponent(type)}`, {
    subject,
  })) as EventType;
  const sample = known.sample as { readonly data?: { readonly object?: unknown } } | null;
  const object = sample?.data?.object;
  if (isMembers(object)) return object;
  throw new CommandFailure(`there is no ${subject}`);
}

async function written(terminal: Terminal, data: string): Promise<string> {
  if (data === '-') return textOf(terminal.stdin);
  if (!data.startsWith('@')) return data;
  const file = data.slice(1);
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new CommandFailure(`${file} cannot be read (${reason})`, {
      exitCode: exitCodes.usage,
      cause: error,
    });
  }
}

function parsed(text: string): Members {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Reported below.
  }
  if (isMembers(value)) return value;
  throw new CommandFailure('--data must be a JSON object, @file or -', { exitCode: exitCodes.usage });
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export type EventType = {
  readonly type: string;
  readonly description: string;
  readonly schema: unknown;
  /** A whole event. */
  readonly sample: unknown;
};

/** `comity events types`: the types that the collections and the configuration declare. */
export async function listEventTypes(
  terminal: Terminal,
  options: ServerArguments,
  json: boolean,
): Promise<number> {
  const server = openWebhookServer(terminal, options);
  const { items } = (await server.ask('GET', '/event-types')) as { readonly items: readonly EventType[] };
  const rows = items.map(({ type, description }) => [type, description]);
  terminal.out(json ? JSON.stringify(items, undefined, 2) : tableText([['TYPE', 'DESCRIPTION'], ...rows]));
  return exitCodes.done;
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
  const next = rest.length === 0 ? value : put(isMembers(inner) ? inner : {}, rest, value);
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
