/** Checks where the id and the type of a sender's messages are said to stand (§6.3). */
import type { Place } from '../../webhooks/presets/sender-rule.ts';
import { isRecord, kindOf } from '../inspection.ts';
import { headerNameOf, isText, type Refuse } from './refuse.ts';

const placesMax = 16;
const pointerCharactersMax = 500;
const formNameCharactersMax = 200;

/** RFC 6901 §3. */
const pointer = /^(?:\/(?:[^~/]|~[01])*)*$/;

/** The first of the places that holds a text counts. */
export function inspectPlaces(place: string, written: unknown, refuse: Refuse): readonly Place[] {
  if (!Array.isArray(written) || written.length > placesMax) {
    refuse(
      `${place} must be a list of at most ${placesMax} places, such as [{ json: '/id' }], not ${sizeOf(written)}`,
    );
    return [];
  }
  return written.flatMap((each: unknown, at) => inspectPlace(`${place}[${at}]`, each, refuse));
}

/** A list of lists: of each of them every place has to hold a text. */
export function inspectType(written: unknown, refuse: Refuse): readonly (readonly Place[])[] {
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

export function isPointer(value: unknown): value is string {
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
