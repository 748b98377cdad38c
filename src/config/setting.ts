/**
 * The kinds of settings and fixed bounds, and the constructors for the table in settings.ts. A setting is data: load-settings.ts checks its
 * bounds, and scripts/docs/settings.ts prints them. The name of a number ends with its unit or with what it counts: `...Max`, `...Ms`,
 * `...Seconds`, `...Reads`, `...Threads`.
 */

type Described = {
  /** One sentence for the reference; says what happens at the bound unless that is obvious. */
  readonly meaning: string;
  /** Heading in the reference. */
  readonly section: string;
};

/** An integer from `least` to `most`, both included, in `unit`. */
export type IntegerSetting = {
  readonly kind: 'integer';
  readonly unit: string;
  readonly default: number;
  readonly least: number;
  readonly most: number;
  /** True: processes on one store must have the same value, and say so in the log where they differ. */
  readonly isCommon?: true;
  readonly meaning: string;
};

/** Written `on` or `off`. */
export type SwitchSetting = { readonly kind: 'switch'; readonly default: boolean; readonly meaning: string };

export type ChoiceSetting<C extends string = string> = {
  readonly kind: 'choice';
  readonly choices: readonly C[];
  readonly default: C;
  readonly meaning: string;
};

/** Text of at most `charactersMax` characters; `refuse` returns what is wrong with one, or undefined. */
export type TextSetting<D extends string | undefined = string | undefined> = {
  readonly kind: 'text';
  readonly default: D;
  readonly charactersMax: number;
  /** Never repeated in a message, a log line or the reference. */
  readonly secret: boolean;
  readonly refuse: (value: string) => string | undefined;
  /** Several spellings of one value become one. */
  readonly normalize: (value: string) => string;
  readonly meaning: string;
};

/** A bound that no operator needs to change: a constant of the program, which no variable and no configuration sets. */
export type FixedBound = Described & {
  readonly kind: 'fixed';
  readonly unit: string;
  readonly value: number;
};

export type Setting = Described & (IntegerSetting | SwitchSetting | ChoiceSetting | TextSetting);

/** The type of a setting's value, from its row. */
export type ValueOf<S> = S extends { readonly kind: 'integer' | 'fixed' }
  ? number
  : S extends { readonly kind: 'switch' }
    ? boolean
    : S extends ChoiceSetting<infer C>
      ? C
      : S extends TextSetting<infer D>
        ? string | D
        : never;

type Row = IntegerSetting | SwitchSetting | ChoiceSetting | TextSetting | Omit<FixedBound, 'section'>;

/** The values of rows that nothing sets. */
export function defaultsOf<const R extends Readonly<Record<string, Row>>>(
  rows: R,
): { readonly [N in keyof R]: ValueOf<R[N]> } {
  const values = Object.entries(rows).map(([name, row]) => [
    name,
    row.kind === 'fixed' ? row.value : row.default,
  ]);
  return Object.fromEntries(values);
}

type IntegerBounds = Pick<IntegerSetting, 'unit' | 'default' | 'least' | 'most' | 'isCommon'>;

export function integer(bounds: IntegerBounds, meaning: string): IntegerSetting {
  return { kind: 'integer', ...bounds, meaning };
}

export function fixed(
  bound: Pick<FixedBound, 'unit' | 'value'>,
  meaning: string,
): Omit<FixedBound, 'section'> {
  return { kind: 'fixed', ...bound, meaning };
}

export function toggle(meaning: string): SwitchSetting {
  return { kind: 'switch', default: false, meaning };
}

export function choice<const C extends string>(
  choices: readonly C[],
  fallback: NoInfer<C>,
  meaning: string,
): ChoiceSetting<C> {
  return { kind: 'choice', choices, default: fallback, meaning };
}

type TextRules = Partial<Pick<TextSetting, 'charactersMax' | 'secret' | 'refuse' | 'normalize'>>;

export function text<const D extends string | undefined>(
  fallback: D,
  rules: TextRules,
  meaning: string,
): TextSetting<D> {
  return {
    kind: 'text',
    default: fallback,
    charactersMax: rules.charactersMax ?? 4096,
    secret: rules.secret ?? false,
    refuse: rules.refuse ?? acceptAny,
    normalize: rules.normalize ?? keep,
    meaning,
  };
}

/** Assigns rows to one heading of the reference. */
export function section<const R extends Readonly<Record<string, object>>>(
  title: string,
  rows: R,
): { readonly [K in keyof R]: R[K] & { readonly section: string } } {
  const entries = Object.entries(rows).map(([name, row]) => [name, { ...row, section: title }]);
  return Object.fromEntries(entries);
}

function acceptAny(): undefined {
  return undefined;
}

function keep(value: string): string {
  return value;
}
