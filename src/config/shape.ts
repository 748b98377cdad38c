/**
 * The shape of declarations, as TypeBox schemas: which members there are, and of what type. An object and a list of `listInParts` are checked part
 * by part; any other schema takes a value as a whole, and its `must` is the predicate of the sentence about one that does not fit. What a
 * shape cannot say, each feature checks in the parts that are sound.
 */
import {
  type Static,
  type TArray,
  type TBoolean,
  type TEnum,
  type TInteger,
  type TObject,
  type TOptional,
  type TSchema,
  type TString,
  type TUnknown,
  type TUnsafe,
  Type,
} from 'typebox';
import { Check } from 'typebox/value';
import { isToken } from '../http/syntax/field-value.ts';
import { isRecord, kindOf, suggestion } from './inspection.ts';

/** The words of a shape, beside the keywords of its schema. */
export type Words = {
  /** Predicate of the sentence about a value that does not fit. */
  readonly must?: string;
  /** Ends that sentence with the kind of the value, the value, or the nearest one of an `enum`. */
  readonly shows?: 'kind' | 'value' | 'nearest';
  /** The noun for a member of the object, in the sentence about an unknown one: `member of the configuration`. */
  readonly calls?: string;
  /** Null stands for an absent member. */
  readonly orNull?: true;
  /** The noun for the items, in the sentence about a list that is too long: `hosts`. */
  readonly holds?: string;
};

type Bound = { readonly maxItems?: number };

type List<I extends TSchema> = TArray<I> & { readonly inParts: true };

/** The sound parts of a value; those with mistakes are undefined. */
export type SoundParts<S extends TSchema> =
  S extends TObject<infer P>
    ? { readonly [N in keyof P]?: SoundParts<P[N]> | undefined }
    : S extends List<infer I>
      ? readonly (SoundParts<I> | undefined)[]
      : Static<S>;

/** Receives a sentence about each mistake. */
export type Reporter = (sentence: string) => void;

/** @param place of the value, with which sentences begin; empty: `report` adds one */
export function inspectShape<S extends TSchema>(
  shape: S,
  written: unknown,
  place: string,
  report: Reporter,
): SoundParts<S> | undefined {
  return soundPart(shape, written, place, report) as SoundParts<S> | undefined;
}

type Shape = TSchema &
  Words &
  Bound & {
    readonly properties?: Readonly<Record<string, Shape>>;
    readonly inParts?: true;
    readonly items?: Shape;
    readonly enum?: readonly string[];
  };

function soundPart(shape: Shape, written: unknown, place: string, report: Reporter): unknown {
  const subject = place === '' ? '' : `${place} `;
  if (shape.properties !== undefined) {
    if (isRecord(written)) return soundMembers(shape, written, place, report);
    report(`${subject}${shape.must ?? 'must be an object'}, not ${kindOf(written)}`);
  } else if (shape.inParts) {
    if (Array.isArray(written)) return soundItems(shape, written, place, report);
    report(`${subject}${shape.must ?? 'must be a list'}, not ${kindOf(written)}`);
  } else if (Check(shape, written)) return written;
  else report(`${subject}${shape.must}${shownOf(shape, written)}`);
  return undefined;
}

function shownOf({ shows, enum: known = [] }: Shape, written: unknown): string {
  if (shows === 'kind') return `, not ${kindOf(written)}`;
  if (shows === 'value') return `, not ${JSON.stringify(written) ?? kindOf(written)}`;
  return shows === 'nearest' && typeof written === 'string' ? suggestion(written, known) : '';
}

function soundItems(shape: Shape, written: readonly unknown[], place: string, report: Reporter): unknown {
  const { items = {}, maxItems = written.length, holds } = shape;
  if (written.length > maxItems)
    report(`${place} may hold ${maxItems} ${holds === undefined ? '' : `${holds} `}at most`);
  return written.slice(0, maxItems).map((item, at) => soundPart(items, item, `${place}[${at}]`, report));
}

function soundMembers(
  { properties = {}, calls }: Shape,
  written: Readonly<Record<string, unknown>>,
  place: string,
  report: Reporter,
): Readonly<Record<string, unknown>> {
  const pathOf = (name: string): string => (place === '' ? name : `${place}.${name}`);
  for (const name of Object.keys(written)) {
    if (Object.hasOwn(properties, name)) continue;
    const subject = place === '' ? `"${name}"` : pathOf(name);
    const sentence =
      calls === undefined ? `${place} has no member "${name}"` : `${subject} is not a ${calls}`;
    report(`${sentence}${suggestion(name, Object.keys(properties))}`);
  }
  const sound: Record<string, unknown> = {};
  for (const [name, shape] of Object.entries(properties)) {
    const value = written[name] === null && shape.orNull ? undefined : written[name];
    if (value !== undefined || !Type.IsOptional(shape))
      sound[name] = soundPart(shape, value, pathOf(name), report);
  }
  return sound;
}

/** A list whose items are checked one by one. */
export function listInParts<I extends TSchema>(items: I, words: Words & Bound = {}): List<I> {
  return Type.Array(items, { ...words, inParts: true }) as List<I>;
}

/** A text of 1 to `most` characters. */
export function textUpTo(most: number, must = `must be a text of 1 to ${most} characters`): TString {
  return textThat((written) => written !== '' && written.length <= most, { must });
}

/** A text that satisfies a condition of more than length. */
export function textThat(satisfies: (written: string) => boolean, words: Words): TString {
  return Type.Refine(Type.String(words), satisfies);
}

export function wholeWithin(least: number, most: number): TInteger {
  return Type.Integer({
    minimum: least,
    maximum: most,
    must: `must be a whole number from ${least} to ${most}`,
  });
}

export function choiceOf<V extends string[]>(values: readonly [...V], words: Words = {}): TEnum<V> {
  return Type.Enum(values, { must: `must be one of ${values.join(', ')}`, ...words });
}

export function functionAs<F>(must = 'must be a function'): TUnsafe<F> {
  const words: Words = { must, shows: 'kind' };
  return Type.Refine(Type.Unsafe<F>(words), (written: unknown) => typeof written === 'function');
}

/** Members whose values the feature itself checks. */
export function unshaped<const N extends string>(...names: readonly N[]): Readonly<Record<N, TUnknown>> {
  const members = names.map((name) => [name, Type.Unknown()]);
  return Object.fromEntries(members) as Readonly<Record<N, TUnknown>>;
}

export const flagShape: TOptional<TBoolean> = Type.Optional(
  Type.Boolean({ must: 'must be true or false', shows: 'kind' }),
);

export const stringShape: TOptional<TString> = Type.Optional(
  Type.String({ must: 'must be a string', shows: 'kind' }),
);

const headerNameCharactersMax = 128;

/** RFC 9110 §5.1. */
export function isHeaderName(written: string): boolean {
  return written.length <= headerNameCharactersMax && isToken(written);
}

export const headerNameShape: TString = textThat(isHeaderName, {
  must: 'must be the name of a header field',
});

const descriptionCharactersMax = 2000;

/** Text about a part, for people. */
export const descriptionShape: TOptional<TString> = Type.Optional(
  textThat((written) => written.length <= descriptionCharactersMax, {
    must: `must be a string of at most ${descriptionCharactersMax} characters`,
  }),
);

/**
 * The parts of an object of named ones.
 * @param written undefined: none
 * @param words `maxItems` bounds them
 */
export function namedParts(
  written: unknown,
  place: string,
  report: Reporter,
  { must = 'must be an object', maxItems = Number.POSITIVE_INFINITY }: Words & Bound = {},
): readonly (readonly [name: string, part: unknown])[] {
  if (written === undefined) return [];
  if (!isRecord(written)) {
    report(`${place} ${must}, not ${kindOf(written)}`);
    return [];
  }
  const entries = Object.entries(written);
  if (entries.length > maxItems) report(`${place} may hold ${maxItems} at most`);
  return entries.slice(0, maxItems);
}
