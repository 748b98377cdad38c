/** Checks how a sender is said to ask whether somebody listens. */
import type { Challenge } from '../../webhooks/presets/sender-rule.ts';
import { isPointer } from './inspect-places.ts';
import { isText, membersOf, type Refuse } from './refuse.ts';

const textCharactersMax = 200;
const members: ReadonlySet<string> = new Set<keyof Challenge>(['json', 'is', 'answer', 'echo']);

export function inspectChallenge(written: unknown, refuse: Refuse): Challenge | undefined {
  const challenge = membersOf('challenge', written, members, refuse);
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
