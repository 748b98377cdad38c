/**
 * The presentation of a collection to people: what its documents and members are called, in which groups the members stand, and how a value is shown.
 * It changes no request and no document: the OpenAPI document carries it, for the dashboard and for any other client.
 */
import type { ByField, MadeMembers } from './logic/collection-calls.ts';

export const displayKinds = [
  ...(['money', 'percent', 'duration', 'bytes', 'country'] as const),
  ...(['state', 'link', 'long'] as const),
] as const;

export type DisplayKind = (typeof displayKinds)[number];

export const tones = ['good', 'bad', 'warn', 'info', 'quiet'] as const;

/** The unit in which a number is stored: `minor` is cents of money, `hundred` is per cent of a share; the others are of a duration. */
export const displayUnits = ['minor', 'hundred', 'ms', 's', 'min', 'h'] as const;

type FurtherDisplay = {
  readonly as?: DisplayKind;
  /** ISO 4217, of money: `EUR`. */
  readonly currency?: string;
  /** The member of the same document that has the currency. */
  readonly currencyField?: string;
  /** Default: whole units of money, a share of 1, seconds. */
  readonly unit?: (typeof displayUnits)[number];
  /** The colour of each value of a state; others get one by their text. */
  readonly tones?: Readonly<Record<string, (typeof tones)[number]>>;
  /** False: no column of a list unless a person chooses it. Default true. */
  readonly inLists?: boolean;
};

export type Display = DisplayKind | FurtherDisplay;

/**
 * @template T the fields of the documents; never: not known
 * @template N the names of members
 */
export type PresentationDeclaration<T = never, N extends string = string> = {
  /** What people call a document, several of them, and the members: `{ one: 'Order', many: 'Orders', members: { dueAt: 'Due' } }`. */
  readonly labels?: {
    readonly one?: string;
    readonly many?: string;
    readonly members?: ByField<N, string>;
  };
  /** A sentence about a member, below its field in forms. */
  readonly help?: ByField<N, string>;
  /**
   * The name of a document in one line: a template such as `'{number} {customerId}'`, or a function that joins members to a text. A member that
   * refers to another document stands for the title of that one.
   */
  readonly title?: string | ((document: TitleDocument<T>) => string);
  /** Members by the heading under which they stand, in the order of pages and forms. The other members come last. */
  readonly groups?: Readonly<Record<string, readonly N[]>>;
  /** How the values of members are shown. */
  readonly display?: ByField<N, Display>;
};

type TitleDocument<T> = [T] extends [never]
  ? never
  : { readonly [Name in keyof T]-?: NonNullable<T[Name]> } & MadeMembers;

/** What the declaration says, resolved; a member that it does not name is absent. */
export type Presentation = {
  readonly one?: string | undefined;
  readonly many?: string | undefined;
  /** A template. */
  readonly title?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly help: Readonly<Record<string, string>>;
  readonly groups: Readonly<Record<string, readonly string[]>>;
  readonly display: Readonly<Record<string, FurtherDisplay>>;
};

/** @returns undefined if the declaration says nothing of it */
export function resolvePresentation(
  { labels, help, title, groups, display }: PresentationDeclaration,
  template: (title: unknown) => string | undefined,
): Presentation | undefined {
  if ([labels, help, title, groups, display].every((each) => each === undefined)) return undefined;
  const shown = Object.entries(display ?? {});
  return {
    one: labels?.one,
    many: labels?.many,
    title: template(title),
    labels: labels?.members ?? {},
    help: help ?? {},
    groups: groups ?? {},
    display: Object.fromEntries(
      shown.map(([name, each]) => [name, typeof each === 'string' ? { as: each } : each]),
    ),
  };
}
