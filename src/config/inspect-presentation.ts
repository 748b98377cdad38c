/**
 * Checks how a declaration presents a collection to people (src/model/presentation.ts), and finds the template of a title that is written as a
 * function: the function is called once with a document whose members are their own places in the template. It must give for real
 * values what the template gives, so that one that decides or computes is a mistake at the start and not a wrong title later.
 */
import { type TSchema, Type } from 'typebox';
import type { Field } from '../model/field.ts';
import {
  type Display,
  type DisplayKind,
  displayKinds,
  displayUnits,
  type PresentationDeclaration,
  tones,
} from '../model/presentation.ts';
import { type Inspection, isRecord, kindOf, suggestion } from './inspection.ts';
import { choiceOf, flagShape, inspectShape, listInParts, namedParts, textThat, textUpTo } from './shape.ts';

const labelCharactersMax = 100;
const helpCharactersMax = 500;
const titleCharactersMax = 200;

/** Codes of ISO 4217 that the runtime can write. */
const currencies: ReadonlySet<string> = new Set(Intl.supportedValuesOf('currency'));
const label = textUpTo(labelCharactersMax);
const nearestShown = { shows: 'nearest' } as const;

const presentationShape = Type.Object({
  labels: Type.Optional(
    Type.Object({
      one: Type.Optional(label),
      many: Type.Optional(label),
      members: Type.Optional(Type.Unknown()),
    }),
  ),
  ...{ help: Type.Unknown(), title: Type.Unknown(), groups: Type.Unknown(), display: Type.Unknown() },
} satisfies Record<keyof PresentationDeclaration, TSchema>);

const displayShape = Type.Object({
  as: Type.Optional(choiceOf([...displayKinds], nearestShown)),
  currency: Type.Optional(
    textThat((code) => currencies.has(code), {
      must: 'must be a currency by its code of ISO 4217, such as EUR',
      shows: 'value',
    }),
  ),
  currencyField: Type.Optional(textUpTo(labelCharactersMax)),
  unit: Type.Optional(choiceOf([...displayUnits], nearestShown)),
  tones: Type.Optional(Type.Unknown()),
  inLists: flagShape,
});

const toneShape = choiceOf([...tones], nearestShown);

/** The types of values that a kind can show. */
const kindTypes: Readonly<Record<DisplayKind, readonly Field['type'][]>> = {
  money: ['number', 'integer', 'string'],
  percent: ['number', 'integer'],
  duration: ['number', 'integer'],
  bytes: ['number', 'integer'],
  country: ['string'],
  state: ['string', 'boolean'],
  link: ['string'],
  long: ['string'],
};

const kindUnits: Readonly<Partial<Record<DisplayKind, readonly string[]>>> = {
  money: ['minor'],
  percent: ['hundred'],
  duration: ['ms', 's', 'min', 'h'],
};

/** The part of a declaration that says how its documents are presented. */
export function presentationOf({
  labels,
  help,
  title,
  groups,
  display,
}: PresentationDeclaration): PresentationDeclaration {
  return { labels, help, title, groups, display } as PresentationDeclaration;
}

export function inspectPresentation(inspection: Inspection): void {
  const { declaration, refuse } = inspection;
  inspectShape(presentationShape, presentationOf(declaration), '', refuse);
  const { labels, help } = declaration;
  const membersOf = (place: string, written: unknown, most: number) => {
    for (const [name, text] of namedParts(written, place, refuse)) {
      inspectMember(inspection, place, name);
      inspectShape(textUpTo(most), text, `${place}.${name}`, refuse);
    }
  };
  membersOf('labels.members', isRecord(labels) ? labels.members : undefined, labelCharactersMax);
  membersOf('help', help, helpCharactersMax);
  inspectGroups(inspection);
  for (const [name, display] of namedParts(declaration.display, 'display', refuse))
    inspectDisplay(inspection, name, display as Display);
  inspectTitle(inspection);
}

/** A member at the top level, which pages and forms have a place for. */
function inspectMember({ declaration, refuse }: Inspection, place: string, name: unknown): name is string {
  const { properties } = declaration.schema;
  if (typeof name === 'string' && Object.hasOwn(properties, name)) return true;
  const meant = typeof name === 'string' ? suggestion(name, Object.keys(properties)) : '';
  const shown = typeof name === 'string' ? `"${name}"` : kindOf(name);
  refuse(`${place} names ${shown}, which is not a member of the schema${meant}`);
  return false;
}

function inspectGroups(inspection: Inspection): void {
  const { declaration, refuse } = inspection;
  const seen = new Map<string, string>();
  for (const [group, members] of namedParts(declaration.groups, 'groups', refuse)) {
    inspectShape(label, group, `groups: the heading "${group}"`, refuse);
    const names = inspectShape(listInParts(Type.Unknown()), members, `groups.${group}`, refuse) ?? [];
    for (const name of names) {
      if (!inspectMember(inspection, `groups.${group}`, name)) continue;
      const other = seen.get(name);
      if (other !== undefined) refuse(`groups.${group} names "${name}", which is in the group ${other} too`);
      seen.set(name, group);
    }
  }
}

function inspectDisplay(inspection: Inspection, name: string, written: Display): void {
  const { fields, refuse } = inspection;
  const place = `display.${name}`;
  if (!inspectMember(inspection, 'display', name)) return;
  const display = typeof written === 'string' ? { as: written } : written;
  const sound = inspectShape(displayShape, display, place, refuse);
  if (sound === undefined) return;
  const { as, currency, currencyField, unit } = sound;
  const type = fields.get(name)?.type;
  if (as !== undefined && type !== undefined && !kindTypes[as].includes(type))
    refuse(`${place} is ${as}, which shows a ${kindTypes[as].join(' or a ')}; the member is of type ${type}`);
  if (as !== 'money' && (currency !== undefined || currencyField !== undefined))
    refuse(`${place} has a currency, which only money has`);
  if (currency !== undefined && currencyField !== undefined)
    refuse(`${place} has currency and currencyField; one of them says which currency it is`);
  if (currencyField !== undefined) inspectMember(inspection, `${place}.currencyField`, currencyField);
  if (unit !== undefined && !(as !== undefined && kindUnits[as]?.includes(unit)))
    refuse(`${place}.unit is ${unit}, which ${as ?? 'a plain value'} has not`);
  for (const [value, tone] of namedParts(sound.tones, `${place}.tones`, refuse))
    inspectShape(toneShape, tone, `${place}.tones.${value}`, refuse);
}

const placeholder = /\{([^{}]*)\}/g;

function inspectTitle(inspection: Inspection): void {
  const { declaration, fields, refuse } = inspection;
  const title: unknown = declaration.title;
  if (title === undefined) return;
  let template: string | undefined;
  try {
    template = titleTemplate(title);
  } catch (error) {
    refuse(
      `title cannot be made of the members as they are (${(error as Error).message}); ${computedAdvice}`,
    );
    return;
  }
  if (template === undefined || template === '' || template.length > titleCharactersMax) {
    refuse(
      `title must be a text of 1 to ${titleCharactersMax} characters such as '{name}', or a function that returns one`,
    );
    return;
  }
  const names = [...template.matchAll(placeholder)].map(([, name = '']) => name);
  if (names.length === 0) refuse(`title names no member; write it in braces: '{name}'`);
  for (const name of names) {
    const field = fields.get(name);
    if (field === undefined)
      refuse(`title names "${name}", which is not a field${suggestion(name, fields.keys())}`);
    else if (field.type === 'json' || field.type === 'array')
      refuse(
        `title names "${name}"; it takes single values, not ${field.type === 'json' ? 'objects' : 'lists'}`,
      );
  }
  if (
    typeof title === 'function' &&
    !samples.every((sample) => isTemplateOf(title as Titled, template, sample))
  )
    refuse(`title decides or computes, which a title cannot; ${computedAdvice}`);
}

const computedAdvice = "declare a computed field, and name that: '{name}'";

type Titled = (document: unknown) => unknown;

/** The template of a declared title. @throws what the function throws @returns undefined if it is neither text nor function */
export function titleTemplate(title: unknown): string | undefined {
  const written = typeof title === 'function' ? (title as Titled)(placeAt('')) : title;
  return typeof written === 'string' ? written : undefined;
}

/** Stands for a member, or for the document: as a text it is its place in a template. */
function placeAt(path: string): unknown {
  return new Proxy(
    {},
    {
      get(_target, name) {
        if (name === Symbol.toPrimitive || name === 'toString') return () => `{${path}}`;
        return typeof name === 'symbol' ? undefined : placeAt(path === '' ? name : `${path}.${name}`);
      },
    },
  );
}

/** One value for every member: of a text, of numbers, of a truth, and none. */
const samples: readonly unknown[] = ['some Text', '', 7, 0, false, undefined];

function isTemplateOf(title: Titled, template: string, sample: unknown): boolean {
  const names = [...template.matchAll(placeholder)].map(([, name = '']) => name);
  const valueAt = (path: string): unknown =>
    path !== '' && !names.some((name) => name.startsWith(`${path}.`))
      ? sample
      : new Proxy(
          {},
          {
            get: (_target, name) =>
              typeof name === 'symbol' ? undefined : valueAt(path === '' ? name : `${path}.${name}`),
          },
        );
  const as = (text: string) => template.replaceAll(placeholder, () => text);
  try {
    const given = title(valueAt(''));
    // Somebody may write `?? ''`.
    return given === as(String(sample)) || (sample === undefined && given === as(''));
  } catch {
    return false;
  }
}
