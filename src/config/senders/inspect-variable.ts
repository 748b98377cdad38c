/** Checks which variables of the environment hold the secrets of senders: each its own, so that who knows one cannot sign as another. */

import type { Refuse } from './refuse.ts';
import type { SecretUse } from './secret-use.ts';

const variableCharactersMax = 128;
const variableName = /^[A-Z][A-Z0-9_]*$/;
/** Kept for settings: a sender's would be taken for a misspelt one. */
const ownPrefix = 'COMITY_';
const endings = { receive: '_WEBHOOK_SECRET', forward: '_FORWARD_SECRET' } as const;

export type Variables = {
  /** The variable: as written, or the default. @param prefix what stands before `secretVariable` where it is written */
  take(of: SecretUse & { readonly refuse: Refuse }, written: unknown, prefix?: string): string;
};

/** Knows which were taken already. */
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
        refuse(`${place} is ${variable}, which sender ${other} has already: each secret needs its own`);
      } else taken.set(variable, name);
      return variable;
    },
  };
}

const notAVariable =
  'must be a name of a variable: a capital letter, then up to 127 capital letters, digits and _';

/** The predicate of a sentence; undefined for a good name. */
function faultOf(variable: string): string | undefined {
  if (variable.startsWith(ownPrefix)) return `must not begin with ${ownPrefix}, which is kept for settings`;
  return variableName.test(variable) && variable.length <= variableCharactersMax ? undefined : notAVariable;
}

/** `BILLING_WEBHOOK_SECRET` for `billing`. */
function defaultVariable(name: string, use: SecretUse['use']): string {
  return `${name.toUpperCase().replaceAll('-', '_')}${endings[use]}`;
}
