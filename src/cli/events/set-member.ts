/** `--set path=value` of `comity events trigger`: replaces one member of the object, at any depth. */
import { CommandFailure, exitCodes } from '../failure.ts';

type Members = Record<string, unknown>;

/**
 * @param written `price=10`, `customer.name=Ada`; the value is JSON if it parses, else text
 * @returns a copy with the member
 */
export function withMember(object: Readonly<Members>, written: string): Readonly<Members> {
  const equals = written.indexOf('=');
  const names = written.slice(0, Math.max(0, equals)).split('.');
  if (equals < 1 || names.some((name) => name === '')) {
    const message = `--set must be like price=10 or customer.name=Ada, not ${JSON.stringify(written)}`;
    throw new CommandFailure(message, { exitCode: exitCodes.usage });
  }
  return put(object, names, valueIn(written.slice(equals + 1)));
}

function put(object: Readonly<Members>, [name = '', ...rest]: readonly string[], value: unknown): Members {
  const inner = Object.hasOwn(object, name) ? object[name] : undefined;
  const next = rest.length === 0 ? value : put(isMembers(inner) ? inner : {}, rest, value);
  // Entries, because a member may be called "__proto__".
  return Object.fromEntries([...Object.entries(object).filter(([key]) => key !== name), [name, next]]);
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function valueIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
