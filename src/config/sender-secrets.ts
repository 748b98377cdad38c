/**
 * Secrets of senders: which variable has which, the checks of a secret, and those of the environment (§5.6), where several stand separated by
 * commas, of which any verifies and the first signs forwarded messages. All mistakes are reported at once, and no message repeats a secret.
 */
import { hexKey, standardKey } from '../webhooks/signature/mac-keys.ts';
import { usesSecrets } from '../webhooks/signature/signature-rule.ts';
import { ConfigurationError, nearest } from './inspection.ts';
import { type Environment, withSecretFiles } from './load-settings.ts';
import type { DeclaredSender } from './senders.ts';
import type { Reporter } from './shape.ts';

/** As many as rotations can leave. */
const secretsMax = 10;

/**
 * @param all variables by name; an empty one counts as unset. `NAME_FILE` names a file in place of one
 * @param warn receives a sentence about each unwise secret
 * @returns secrets by variable, the current one first; without the variables that are not set
 * @throws ConfigurationError with every mistake
 */
export function readSenderSecrets(
  all: Environment,
  senders: ReadonlyMap<string, DeclaredSender>,
  warn: (sentence: string) => void = ignore,
): ReadonlyMap<string, readonly string[]> {
  const places = secretPlaces(senders.values());
  const given = new Map<string, readonly string[]>();
  const mistakes: string[] = [];
  const variables = new Set(places.map(({ variable }) => variable));
  const environment = withSecretFiles(all, (variable) => variables.has(variable), mistakes);
  for (const place of places) {
    const written = environment[place.variable];
    if (written === undefined || written === '') continue;
    given.set(place.variable, readSecrets(place, written, mistakes, warn));
  }
  if (mistakes.length > 0) throw new ConfigurationError(mistakes);
  warnOfMisspelt(environment, places, warn);
  return given;
}

/** Supabase's `v1,whsec_...` is one secret. */
const betweenSecrets = /(?<!(?:^|,)\s*v1),|,(?!whsec_)/;

function readSecrets(
  { sender, use, variable }: SecretPlace,
  written: string,
  mistakes: string[],
  warn: (sentence: string) => void,
): readonly string[] {
  const secrets = [...new Set(written.split(betweenSecrets).map((secret) => secret.trim()))];
  if (secrets.length > secretsMax) mistakes.push(`${variable} holds more than ${secretsMax} secrets`);
  for (const [at, secret] of secrets.slice(0, secretsMax).entries()) {
    const which = secrets.length === 1 ? variable : `${variable}, secret ${at + 1} of ${secrets.length},`;
    const fault = refuseSenderSecret(sender, use, secret);
    const weakness = weaknessOf(secret);
    if (fault !== undefined) mistakes.push(`${which} ${fault}`);
    else if (weakness !== undefined) warn(`${which} ${weakness}`);
  }
  return secrets;
}

/** Warns of misspelt variables: without the right one, Comity creates a secret and refuses every message of the sender. */
function warnOfMisspelt(
  environment: Environment,
  places: readonly SecretPlace[],
  warn: (sentence: string) => void,
): void {
  const known = new Set(places.map(({ variable }) => variable));
  const unset = [...known].filter((variable) => (environment[variable] ?? '') === '');
  for (const [name, value] of Object.entries(environment)) {
    const ending = Object.values(endingOf).find((each) => name.endsWith(each));
    if (ending === undefined || value === undefined || value === '' || known.has(name)) continue;
    // Compares what precedes the ending: two names with the same ending are always similar.
    const stems = unset.filter((each) => each.endsWith(ending)).map((each) => each.slice(0, -ending.length));
    const meant = nearest(name.slice(0, -ending.length), stems);
    if (meant !== undefined)
      warn(`${name} belongs to no sender and was ignored; did you mean ${meant}${ending}?`);
  }
}

function ignore(): void {
  // The default discards warnings.
}

export const secretCharactersMax = 1024;
const secretCharactersAdvised = 16;
const prefix = 'whsec_';
/** The characters of a field value (RFC 9110 §5.5), inner spaces included. */
const fieldText = /^[!-~](?:[ -~]*[!-~])?$/;

/** Why the secret is refused, as the predicate of a sentence; undefined for a valid one. */
export function refuseSenderSecret(
  { rule, handOn }: Pick<DeclaredSender, 'rule' | 'handOn'>,
  use: SecretUse['use'],
  secret: string,
): string | undefined {
  if (secret === '') return 'is empty';
  if (secret.length > secretCharactersMax) return `has more than ${secretCharactersMax} characters`;
  const { signature } = rule;
  if (use === 'receive' && signature.kind === 'token') {
    return fieldText.test(secret)
      ? undefined
      : `has a character that the field ${signature.header} cannot hold`;
  }
  const key = signature.kind === 'hmac' ? signature.key : 'text';
  if (use === 'receive' && key === 'hex')
    return isKey(hexKey, secret) ? undefined : 'must be hexadecimal digits in pairs';
  const isBase64 =
    use === 'receive' ? key === 'base64' : handOn.kind === 'forward' && handOn.scheme === 'standard';
  return isBase64 && !isKey(standardKey, secret) ? 'must be "whsec_" and base64 with its padding' : undefined;
}

/** Why the secret is unwise, as the predicate of a sentence. */
export function weaknessOf(secret: string): string | undefined {
  const length = secret.startsWith(prefix) ? secret.length - prefix.length : secret.length;
  return length < secretCharactersAdvised
    ? `has fewer than ${secretCharactersAdvised} characters and could be guessed`
    : undefined;
}

function isKey(keyOf: (secret: string) => Uint8Array, secret: string): boolean {
  try {
    keyOf(secret);
    return true;
  } catch {
    // It throws for anything that is not a key; the caller reports the reason.
    return false;
  }
}

type SecretUse = { readonly name: string; readonly use: 'receive' | 'challenge' | 'forward' };

export type SecretPlace = SecretUse & { readonly sender: DeclaredSender; readonly variable: string };

/**
 * Every secret that the senders need, in the order of their declaration: one that verifies received messages, the token of a challenge, and
 * one that signs forwarded messages.
 */
export function secretPlaces(senders: Iterable<DeclaredSender>): readonly SecretPlace[] {
  return [...senders].flatMap((sender) => {
    const { name, secretVariable, handOn } = sender;
    // A sender that signs by a key pair has no secret that the receiver knows.
    const isKnown = usesSecrets(sender.rule.signature);
    const variables = [
      ['receive', isKnown ? secretVariable : undefined],
      ['challenge', sender.challengeVariable],
      ['forward', handOn.kind === 'forward' ? handOn.secretVariable : undefined],
    ] as const;
    return variables.flatMap(([use, variable]) =>
      variable === undefined ? [] : [{ sender, name, use, variable }],
    );
  });
}

const variableCharactersMax = 128;
const variableName = /^[A-Z][A-Z0-9_]*$/;
/** Reserved for settings, among which a variable of a sender would look misspelt. */
const settingsPrefix = 'COMITY_';
const endingOf = {
  receive: '_WEBHOOK_SECRET',
  challenge: '_CHALLENGE_TOKEN',
  forward: '_FORWARD_SECRET',
} as const;

export type Variables = {
  /** The variable: as written, or the default. @param prefix path of the member `secretVariable` */
  take(of: SecretUse & { readonly refuse: Reporter }, written: unknown, prefix?: string): string;
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

/** The mistake in the name, as the predicate of a sentence; undefined for a valid one. */
function faultOf(variable: string): string | undefined {
  if (variable.startsWith(settingsPrefix))
    return `must not begin with ${settingsPrefix}, which is reserved for settings`;
  return variableName.test(variable) && variable.length <= variableCharactersMax ? undefined : notAVariable;
}

/** `BILLING_WEBHOOK_SECRET` for `billing`. */
function defaultVariable(name: string, use: SecretUse['use']): string {
  return `${name.toUpperCase().replaceAll('-', '_')}${endingOf[use]}`;
}
