/**
 * Secrets of senders from the environment (§5.6): several separated by commas, of which any verifies and the first signs forwarded messages.
 * All mistakes are reported at once, and no message repeats a secret.
 */
import { ConfigurationError } from './inspection.ts';
import type { Environment } from './load-settings.ts';
import { nearest } from './nearest.ts';
import { withSecretFiles } from './secret-files.ts';
import { refuseSenderSecret, type SecretPlace, secretPlaces, weaknessOf } from './senders/secret-rule.ts';

import type { DeclaredSender } from './senders.ts';

/** As many as rotations can leave. */
const secretsMax = 10;
const endings = ['_WEBHOOK_SECRET', '_FORWARD_SECRET'] as const;

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

function readSecrets(
  { sender, use, variable }: SecretPlace,
  written: string,
  mistakes: string[],
  warn: (sentence: string) => void,
): readonly string[] {
  const secrets = [...new Set(written.split(',').map((secret) => secret.trim()))];
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
    const ending = endings.find((each) => name.endsWith(each));
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
