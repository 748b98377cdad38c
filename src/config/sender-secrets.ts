/**
 * Secrets of senders as the environment has them (§5.6): several with commas between, of which any may have signed and the first signs what
 * is forwarded. Every mistake is told at once, and none of the sentences repeats a secret.
 */
import { ConfigurationError } from './configuration-error.ts';
import type { Environment } from './load-settings.ts';
import { nearest } from './nearest.ts';
import { withSecretFiles } from './secret-files.ts';
import { refuseSenderSecret, weaknessOf } from './senders/secret-rule.ts';
import { type SecretPlace, secretPlaces } from './senders/secret-use.ts';
import type { DeclaredSender } from './senders.ts';

/** As many as there may be after rotations. */
const secretsMax = 10;
const endings = ['_WEBHOOK_SECRET', '_FORWARD_SECRET'] as const;

/**
 * @param all variables by name; an empty one counts as unset. `NAME_FILE` names a file in place of one
 * @param warn takes a sentence about what works but is unwise
 * @returns secrets by variable, the current one first; variables that are not set are not there
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

/** Without the variable a secret would be made, and every message refused that is signed with the one that was meant. */
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
    // Only what stands before the ending is compared: any two names with one ending are much alike.
    const stems = unset.filter((each) => each.endsWith(ending)).map((each) => each.slice(0, -ending.length));
    const meant = nearest(name.slice(0, -ending.length), stems);
    if (meant !== undefined) warn(`${name} is no sender's and was ignored; did you mean ${meant}${ending}?`);
  }
}

function ignore(): void {
  // A caller that shows no warnings is served all the same.
}
