/**
 * Checks what a configuration declares of senders of webhooks (§4.14), and fills in what their presets say: src/config/senders has a file
 * for each part of a declaration. Every mistake is told at once; what is returned then is of no use.
 */
import { type PresetName, presetNames, presets } from '../webhooks/presets/presets.ts';
import type { SenderRule } from '../webhooks/presets/sender-rule.ts';
import { isRecord, kindOf } from './inspection.ts';
import { suggestion } from './nearest.ts';
import { inspectChallenge } from './senders/inspect-challenge.ts';
import { inspectHandOn, inspectInFlight, inspectSchedule } from './senders/inspect-hand-on.ts';
import { inspectKeep } from './senders/inspect-keep.ts';
import { inspectKeysUrl, inspectPublicKeys } from './senders/inspect-keys.ts';
import { inspectPlaces, inspectType } from './senders/inspect-places.ts';
import { inspectSignature } from './senders/inspect-signature.ts';
import { createVariables, type Variables } from './senders/inspect-variable.ts';
import type { Refuse } from './senders/refuse.ts';
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

/** @param written what stands under `senders` */
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
    if (!senderName.test(name)) refuse(`the name ${nameRule}${spelledWell(name)}`);
    if (!isRecord(declaration)) refuse(`must be an object, not ${kindOf(declaration)}`);
    else {
      const sender = inspectSender(name, declaration, variables, refuse);
      if (sender !== undefined) found.set(name, sender);
    }
  }
  return found;
}

const nameRule =
  'stands in the path and must be up to 64 lower-case letters, digits and -, of which the first is no -';

function spelledWell(name: string): string {
  const meant = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  return senderName.test(meant) ? `; did you mean ${meant}?` : '';
}

/** Undefined where there is no way of telling its signatures. */
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
      refuse(`must have a preset (${presetNames.join(', ')}) or a signature, which say how it signs`);
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

/** The rule of the preset, single parts of it replaced; without a preset what is not written is nowhere to be found in a message. */
function inspectRule(
  written: Written,
  preset: PresetName | undefined,
  refuse: Refuse,
): SenderRule | undefined {
  const base = preset === undefined ? undefined : presets[preset];
  // A preset that is not known was told of: what is missing because of that is not worth telling.
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
