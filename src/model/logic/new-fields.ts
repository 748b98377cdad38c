/**
 * Which members a new document may leave out. TypeBox drops a default from the type of a schema; `Type` of this package is TypeBox's own, typed
 * so that the type keeps it: `create({ title })` is accepted where `status` has a default.
 */
import type {
  Static,
  TArray,
  TArrayOptions,
  TBoolean,
  TEnum,
  TEnumValue,
  TInteger,
  TLiteral,
  TLiteralValue,
  TNumber,
  TNumberOptions,
  TObject,
  TObjectOptions,
  TProperties,
  TSchema,
  TSchemaOptions,
  TString,
  TStringOptions,
  TUnion,
} from 'typebox';
import { Type as TypeBox } from 'typebox';

type Defaulted = { readonly default: unknown };

/** The builders whose schemas have defaults in practice. Each is an overload before that of TypeBox. */
type DefaultedBuilders = {
  Array<Item extends TSchema>(items: Item, options: TArrayOptions & Defaulted): TArray<Item> & Defaulted;
  Boolean(options: TSchemaOptions & Defaulted): TBoolean & Defaulted;
  Enum<Values extends TEnumValue[]>(
    values: readonly [...Values],
    options: TSchemaOptions & Defaulted,
  ): TEnum<Values> & Defaulted;
  Integer(options: TNumberOptions & Defaulted): TInteger & Defaulted;
  Literal<Value extends TLiteralValue>(
    value: Value,
    options: TSchemaOptions & Defaulted,
  ): TLiteral<Value> & Defaulted;
  Number(options: TNumberOptions & Defaulted): TNumber & Defaulted;
  Object<Properties extends TProperties>(
    properties: Properties,
    options: TObjectOptions & Defaulted,
  ): TObject<Properties> & Defaulted;
  String(options: TStringOptions & Defaulted): TString & Defaulted;
  Union<Types extends TSchema[]>(
    anyOf: [...Types],
    options: TSchemaOptions & Defaulted,
  ): TUnion<Types> & Defaulted;
};

type Builders = Omit<typeof TypeBox, keyof DefaultedBuilders> & {
  readonly [Name in keyof DefaultedBuilders]: DefaultedBuilders[Name] & (typeof TypeBox)[Name];
};

export const Type: Builders = TypeBox as Builders;

type DefaultedName<P> = { [Name in keyof P]: P[Name] extends Defaulted ? Name : never }[keyof P];

type Flat<T> = { [Name in keyof T]: T[Name] };

/**
 * The fields that a caller gives for a new document: those with a default may be left out, also within objects.
 * @template S the schema of the collection
 */
export type NewFields<S extends TObject> =
  S extends TObject<infer P extends TProperties> ? WithoutDefaulted<Static<S>, P> : never;

type WithoutDefaulted<T, P> = Flat<
  {
    [Name in keyof T as Name extends DefaultedName<P> ? never : Name]: Given<
      T[Name],
      Name extends keyof P ? P[Name] : unknown
    >;
  } & {
    [Name in keyof T & DefaultedName<P>]?: Given<T[Name], P[Name]>;
  }
>;

type Given<V, S> = S extends TObject<infer P extends TProperties> ? WithoutDefaulted<V, P> : V;
