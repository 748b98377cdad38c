/**
 * Checks the declared senders of webhooks (§4.14) and applies their presets; src/config/senders has a file for each part of a declaration.
 * Every mistake is reported at once, and the result is then unusable.
 */
import {
  type Challenge,
  type Place,
  type PresetName,
  presetNames,
  presets,
  type SenderRule,
} from '../webhooks/presets.ts';

import { publicKeyOf } from '../webhooks/signature/ed25519.ts';
import type { SignatureRule } from '../webhooks/signature/signature-rule.ts';
import { isRecord, kindOf } from './inspection.ts';
import { suggestion } from './nearest.ts';
import { isLoopbackHost } from './oauth-providers.ts';
import { inspectHandOn, inspectInFlight, inspectSchedule } from './senders/inspect-hand-on.ts';
import { inspectSignature } from './senders/inspect-signature.ts';
import {
  createVariables,
  headerNameOf,
  isText,
  membersOf,
  type Refuse,
  type Variables,
} from './senders/refuse.ts';
import type { DeclaredSender, SenderDeclaration } from './senders.ts';

type Written = Readonly<Record<string, unknown>>;

const sendersMax = 1000;
const descriptionCharactersMax = 2000;
const senderName = /^[a-z0-9][a-z0-9-]{0,63}$/;
const members: ReadonlySet<string> = new Set<keyof SenderDeclaration>([
  'description',
  'preset',
  'signature',
  'dedupe',
  'type',
  'challenge',
  'keep',
  'secretVariable',
  'publicKeys',
  'keysUrl',
  'handler',
  'forward',
  'schedule',
  'inFlightMax',
]);

export function inspectSenders(written: unknown, mistakes: string[]): ReadonlyMap<string, DeclaredSender> {
  const found = new Map<string, DeclaredSender>();
  if (written === undefined) return found;
  if (!isRecord(written)) {
    mistakes.push(`senders must be an object, not ${kindOf(written)}`);
    return found;
  }
  const entries = Object.entries(written);
  if (entries.length > sendersMax) mistakes.push(`senders may hold ${sendersMax} at most`);
  const variables = createVariables();
  for (const [name, declaration] of entries.slice(0, sendersMax)) {
    const refuse: Refuse = (predicate) => void mistakes.push(`sender ${name}: ${predicate}`);
    if (!senderName.test(name)) refuse(`the name ${nameRule}${suggestedName(name)}`);
    if (!isRecord(declaration)) refuse(`must be an object, not ${kindOf(declaration)}`);
    else {
      const sender = inspectSender(name, declaration, variables, refuse);
      if (sender !== undefined) found.set(name, sender);
    }
  }
  return found;
}

const nameRule =
  'is part of the path and must be up to 64 lower-case letters, digits and -, and not begin with -';

function suggestedName(name: string): string {
  const meant = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  return senderName.test(meant) ? `; did you mean ${meant}?` : '';
}

function inspectSender(
  name: string,
  written: Written,
  variables: Variables,
  refuse: Refuse,
): DeclaredSender | undefined {
  for (const member of Object.keys(written)) {
    if (!members.has(member)) {
      refuse(`"${member}" is not a property of a sender${suggestion(member, members)}`);
    }
  }
  const { description = '' } = written;
  if (typeof description !== 'string' || description.length > descriptionCharactersMax) {
    refuse(`description must be a string of at most ${descriptionCharactersMax} characters`);
  }
  const preset = inspectPreset(written, refuse);
  const rule = inspectRule(written, preset, refuse);
  const use = { name, refuse };
  const secretVariable = variables.take({ ...use, use: 'receive' }, written.secretVariable);
  const handOn = inspectHandOn(
    written,
    (forward) => variables.take({ ...use, use: 'forward' }, forward, 'forward.'),
    refuse,
  );
  const publicKeys = inspectPublicKeys(written.publicKeys, rule?.signature, refuse);
  const keysUrl = inspectKeysUrl(written.keysUrl, rule?.signature, refuse);
  const schedule = inspectSchedule(written.schedule, refuse);
  const inFlightMax = inspectInFlight(written.inFlightMax, refuse);
  if (rule === undefined) return undefined;
  return {
    ...{ name, description: String(description), preset: preset ?? null, rule, secretVariable },
    ...{ publicKeys, keysUrl, handOn, schedule, inFlightMax },
  };
}

function inspectPreset({ preset, signature }: Written, refuse: Refuse): PresetName | undefined {
  if (preset === undefined) {
    if (signature === undefined) {
      refuse(`must have a preset (${presetNames.join(', ')}) or a signature`);
    }
    return undefined;
  }
  const known = presetNames.find((name) => name === preset);
  if (known === undefined) {
    const meant = typeof preset === 'string' ? suggestion(preset, presetNames) : '';
    refuse(`preset must be one of ${presetNames.join(', ')}${meant}`);
  }
  return known;
}

/** The rule of the preset with the written parts replaced. Without a preset, messages have only what is written. */
function inspectRule(
  written: Written,
  preset: PresetName | undefined,
  refuse: Refuse,
): SenderRule | undefined {
  const base = preset === undefined ? undefined : presets[preset];
  // An unknown preset is one mistake already; its missing parts are not reported again.
  const lacksBase = written.preset !== undefined && preset === undefined;
  const signature = lacksBase ? undefined : inspectSignature(written.signature, base?.signature, refuse);
  const places = written.dedupe === undefined ? undefined : inspectPlaces('dedupe', written.dedupe, refuse);
  const type = written.type === undefined ? undefined : inspectType(written.type, refuse);
  const challenge = written.challenge === undefined ? undefined : inspectChallenge(written.challenge, refuse);
  const keep = written.keep === undefined ? undefined : inspectKeep(written.keep, signature, refuse);
  if (signature === undefined) return undefined;
  return {
    signature,
    dedupe: places ?? base?.dedupe ?? [],
    type: type ?? base?.type ?? [],
    challenge: challenge ?? base?.challenge,
    keep: keep ?? base?.keep ?? [],
  };
}

const textCharactersMax = 200;
const challengeMembers: ReadonlySet<string> = new Set<keyof Challenge>(['json', 'is', 'answer', 'echo']);

/** Checks how a sender asks whether the endpoint exists. */
function inspectChallenge(written: unknown, refuse: Refuse): Challenge | undefined {
  const challenge = membersOf('challenge', written, challengeMembers, refuse);
  if (challenge === undefined) return undefined;
  const { json, is, answer, echo } = challenge;
  for (const [name, value] of [
    ['json', json],
    ['echo', echo],
  ] as const) {
    if (!isPointer(value)) refuse(`challenge.${name} must be a JSON Pointer, such as /challenge`);
  }
  for (const [name, value] of [
    ['is', is],
    ['answer', answer],
  ] as const) {
    if (!isText(value, textCharactersMax)) {
      refuse(`challenge.${name} must be a text of 1 to ${textCharactersMax} characters`);
    }
  }
  return { json: String(json), is: String(is), answer: String(answer), echo: String(echo) };
}

const keptMax = 64;
const credentials: ReadonlySet<string> = new Set(['authorization', 'cookie', 'proxy-authorization']);

/** Checks the header fields that are kept with a message. Secrets are refused: handlers see the kept fields, and forwarding sends them on. */
function inspectKeep(
  written: unknown,
  signature: SignatureRule | undefined,
  refuse: Refuse,
): readonly string[] {
  if (!Array.isArray(written)) {
    refuse(`keep must be a list of names of header fields, not ${kindOf(written)}`);
    return [];
  }
  if (written.length > keptMax) refuse(`keep may hold ${keptMax} names at most`);
  const kept = written.slice(0, keptMax).flatMap((each: unknown, at) => {
    const name = headerNameOf(each);
    if (name === undefined) refuse(`keep[${at}] must be the name of a header field`);
    else if (credentials.has(name) || (signature?.kind === 'token' && signature.header === name)) {
      refuse(`keep[${at}] is ${name}, which holds a secret and is not kept`);
    }
    return name ?? [];
  });
  return [...new Set(kept)];
}

const publicKeysMax = 10;
const urlCharactersMax = 2000;

/** Checks the public keys of a sender's Ed25519 signatures (`v1a`, §5.6), or the URL where it publishes them. */
function inspectPublicKeys(
  written: unknown,
  signature: SignatureRule | undefined,
  refuse: Refuse,
): readonly string[] {
  if (written === undefined) return [];
  refuseWithoutUse('publicKeys', signature, refuse);
  if (!Array.isArray(written) || written.length > publicKeysMax || !written.every(isPublicKey)) {
    refuse(`publicKeys must be a list of at most ${publicKeysMax} texts: "whpk_" and base64 of 32 octets`);
    return [];
  }
  return written;
}

function inspectKeysUrl(
  written: unknown,
  signature: SignatureRule | undefined,
  refuse: Refuse,
): URL | undefined {
  if (written === undefined) return undefined;
  refuseWithoutUse('keysUrl', signature, refuse);
  const url = typeof written === 'string' && written.length <= urlCharactersMax ? URL.parse(written) : null;
  if (url !== null && isTrustworthy(url)) return url;
  refuse(
    'keysUrl must be an https URL without user and fragment (http:// only for 127.0.0.1, [::1] and localhost)',
  );
  return undefined;
}

function refuseWithoutUse(member: string, signature: SignatureRule | undefined, refuse: Refuse): void {
  if (signature === undefined) return;
  if (signature.kind === 'token' || signature.asymmetricPrefix === undefined) {
    refuse(`${member} has no effect, because no signature of this sender uses a key pair`);
  }
}

/** The keys decide which signatures are valid, so they must arrive unaltered. */
function isTrustworthy({ protocol, hostname, username, password, hash }: URL): boolean {
  if (username !== '' || password !== '' || hash !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

function isPublicKey(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  try {
    publicKeyOf(value);
    return true;
  } catch {
    // It throws for anything that is not a key; the caller reports the reason.
    return false;
  }
}

const placesMax = 16;
const pointerCharactersMax = 500;
const formNameCharactersMax = 200;

/** RFC 6901 §3. */
const pointer = /^(?:\/(?:[^~/]|~[01])*)*$/;

/** Checks where a sender's messages have their id and type (§6.3). The first place that holds a text counts. */
function inspectPlaces(place: string, written: unknown, refuse: Refuse): readonly Place[] {
  if (!Array.isArray(written) || written.length > placesMax) {
    refuse(
      `${place} must be a list of at most ${placesMax} places, such as [{ json: '/id' }], not ${sizeOf(written)}`,
    );
    return [];
  }
  return written.flatMap((each: unknown, at) => inspectPlace(`${place}[${at}]`, each, refuse));
}

/** Checks a list of lists of places; all places of an inner list must hold a text. */
function inspectType(written: unknown, refuse: Refuse): readonly (readonly Place[])[] {
  if (!Array.isArray(written) || written.length > placesMax) {
    refuse(
      `type must be a list of at most ${placesMax} lists of places, such as [[{ json: '/type' }]], not ${sizeOf(written)}`,
    );
    return [];
  }
  return written.map((each: unknown, at) => {
    const places = inspectPlaces(`type[${at}]`, each, refuse);
    if (Array.isArray(each) && each.length === 0) refuse(`type[${at}] must hold at least one place`);
    return places;
  });
}

function isPointer(value: unknown): value is string {
  return typeof value === 'string' && value.length <= pointerCharactersMax && pointer.test(value);
}

function inspectPlace(place: string, written: unknown, refuse: Refuse): readonly Place[] {
  const [[kind, value] = [], ...others] = isRecord(written) ? Object.entries(written) : [];
  if (others.length === 0) {
    if (kind === 'header') {
      const header = headerNameOf(value);
      if (header !== undefined) return [{ header }];
      refuse(`${place}.header must be the name of a header field`);
      return [];
    }
    if (kind === 'json') {
      if (isPointer(value)) return [{ json: value }];
      refuse(`${place}.json must be a JSON Pointer, such as /data/id`);
      return [];
    }
    if (kind === 'form') {
      if (isText(value, formNameCharactersMax)) return [{ form: value }];
      refuse(`${place}.form must be the name of a form field`);
      return [];
    }
  }
  refuse(`${place} must be one of { header }, { json } and { form }`);
  return [];
}

function sizeOf(written: unknown): string {
  return Array.isArray(written) ? `${written.length}` : kindOf(written);
}
