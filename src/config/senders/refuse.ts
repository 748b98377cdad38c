/** The common ground of the checks of a sender's declaration: reporting mistakes, and reading members. */
import { isToken } from '../../http/syntax/token.ts';
import { isRecord, kindOf } from '../inspection.ts';
import { suggestion } from '../nearest.ts';
import type { SecretUse } from './secret-rule.ts';

/** Receives the predicate of a sentence whose subject is the sender. */
export type Refuse = (predicate: string) => void;

type Members = Readonly<Record<string, unknown>>;

const headerNameCharactersMax = 128;

/** The object at the place, if all its members are known; reports everything else. */
export function membersOf(
  place: string,
  written: unknown,
  known: ReadonlySet<string>,
  refuse: Refuse,
): Members | undefined {
  if (!isRecord(written)) {
    refuse(`${place} must be an object, not ${kindOf(written)}`);
    return undefined;
  }
  for (const name of Object.keys(written)) {
    if (!known.has(name)) refuse(`${place} has no member "${name}"${suggestion(name, known)}`);
  }
  return written;
}

/** The lower-case name of a header field (RFC 9110 §5.1); undefined for anything else. */
export function headerNameOf(written: unknown): string | undefined {
  if (typeof written !== 'string' || written.length > headerNameCharactersMax || !isToken(written)) {
    return undefined;
  }
  return written.toLowerCase();
}

export function isText(value: unknown, charactersMax: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= charactersMax;
}

export function isWhole(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;
}

const variableCharactersMax = 128;
const variableName = /^[A-Z][A-Z0-9_]*$/;
/** Reserved for settings, among which a variable of a sender would look misspelt. */
const ownPrefix = 'COMITY_';
const endings = { receive: '_WEBHOOK_SECRET', forward: '_FORWARD_SECRET' } as const;

export type Variables = {
  /** The variable: as written, or the default. @param prefix path of the member `secretVariable` */
  take(of: SecretUse & { readonly refuse: Refuse }, written: unknown, prefix?: string): string;
};

/** Assigns the environment variables of senders' secrets: each its own, so that the owner of one secret cannot sign for another sender. */
export function createVariables(): Variables {
  const taken = new Map<string, string>();
  return {
    take({ name, use, refuse }, written, prefix = '') {
      const variable = written === undefined ? defaultVariable(name, use) : String(written);
      const place = `${prefix}secretVariable`;
      const fault = typeof (written ?? '') === 'string' ? faultOf(variable) : notAVariable;
      if (fault !== undefined) {
        refuse(written === undefined ? `must have a ${place}: ${variable} ${fault}` : `${place} ${fault}`);
      }
      const other = taken.get(variable);
      if (other !== undefined) {
        refuse(
          `${place} is ${variable}, which sender ${other} uses already; each secret needs a variable of its own`,
        );
      } else taken.set(variable, name);
      return variable;
    },
  };
}

const notAVariable =
  'must be a name of a variable: a capital letter, then up to 127 capital letters, digits and _';

/** What is wrong with the name, as the predicate of a sentence; undefined for a valid one. */
function faultOf(variable: string): string | undefined {
  if (variable.startsWith(ownPrefix))
    return `must not begin with ${ownPrefix}, which is reserved for settings`;
  return variableName.test(variable) && variable.length <= variableCharactersMax ? undefined : notAVariable;
}

/** `BILLING_WEBHOOK_SECRET` for `billing`. */
function defaultVariable(name: string, use: SecretUse['use']): string {
  return `${name.toUpperCase().replaceAll('-', '_')}${endings[use]}`;
}
