/** Collections that the tests of content and documents share: the products and notes of the shop, and one with all else. */
import { type TObject, Type } from 'typebox';
import type { Collection } from '../../src/model/collection.ts';

/** A collection as the configuration would make it of these parts; what is not given has its default. */
export function sampleCollection(schema: TObject, parts: Partial<Collection> = {}): Collection {
  return {
    name: 'samples',
    description: '',
    schema,
    fields: new Map(),
    access: { read: 'public', create: 'principal', update: 'principal', delete: 'principal' },
    readOnly: new Map(),
    hidden: new Map(),
    tenantField: undefined,
    conceal: true,
    putCreates: false,
    takenIds: ['bulk', 'bulk-delete'],
    softDelete: false,
    requireMatch: false,
    indexes: [],
    unique: [],
    textBounds: [],
    unpatchable: new Set(),
    required: new Set(schema.required ?? []),
    references: [],
    dependants: [],
    formats: new Set(['json', 'form', 'multipart'] as const),
    textField: undefined,
    searchFields: [],
    cacheControl: 'no-cache',
    deprecation: undefined,
    examples: [],
    ...parts,
  };
}

export const products: Collection = sampleCollection(
  Type.Object({
    name: Type.String({ minLength: 1, maxLength: 200 }),
    price: Type.Number({ minimum: 0 }),
    categoryId: Type.String(),
    sku: Type.Optional(Type.String()),
    tags: Type.Optional(Type.Array(Type.String())),
    stock: Type.Optional(Type.Integer()),
  }),
  {
    name: 'products',
    unpatchable: new Set(['sku']),
    references: [
      { field: 'categoryId', collection: 'categories', countAs: 'productCount', onDelete: 'restrict' },
    ],
  },
);

export const notes: Collection = sampleCollection(Type.Object({ text: Type.String() }), {
  name: 'notes',
  formats: new Set(['json', 'form', 'multipart', 'text'] as const),
  textField: 'text',
});

export const profiles: Collection = sampleCollection(
  Type.Object({
    name: Type.String(),
    address: Type.Object({
      city: Type.String(),
      zip: Type.Optional(Type.String({ pattern: '^[0-9]{5}$' })),
    }),
    age: Type.Optional(Type.Union([Type.Integer({ minimum: 0 }), Type.Null()])),
    active: Type.Optional(Type.Boolean()),
    level: Type.Optional(Type.Union([Type.Literal('low'), Type.Literal('high')])),
    scores: Type.Optional(Type.Array(Type.Number())),
    flags: Type.Array(Type.Boolean()),
    nick: Type.Optional(Type.String({ minLength: 2 })),
    note: Type.Optional(Type.String()),
  }),
);
