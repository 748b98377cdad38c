/**
 * Says of each text that an index holds how many bytes it may take (config/text-bounds.ts). In the description, because JSON Schema
 * counts code points; left out where the schema itself keeps the text shorter.
 */
import type { Collection } from '../model/collection.ts';
import type { Item } from './item.ts';

const bytesPerCodePointMax = 4;
const shortFormats: ReadonlySet<unknown> = new Set(['date-time', 'date', 'time', 'uuid', 'ipv4', 'ipv6']);

/** The schema of the collection with the bounds said in it. @param schema plain JSON, which is not changed */
export function withTextBounds(schema: Item, { textBounds }: Pick<Collection, 'textBounds'>): Item {
  let result = schema;
  for (const { path, bytesMax } of textBounds) result = describeAt(result, path, bytesMax);
  return result;
}

function describeAt(schema: Item, path: readonly string[], bytesMax: number): Item {
  const [name, ...rest] = path;
  if (name === undefined) return isShort(schema, bytesMax) ? schema : described(schema, bytesMax);
  const { properties } = schema;
  if (!isItem(properties) || !isItem(properties[name])) return schema;
  return { ...schema, properties: { ...properties, [name]: describeAt(properties[name], rest, bytesMax) } };
}

function described(schema: Item, bytesMax: number): Item {
  const bound = `At most ${bytesMax} bytes of UTF-8, because it is indexed.`;
  const { description } = schema;
  return { ...schema, description: typeof description === 'string' ? `${description} ${bound}` : bound };
}

function isShort({ maxLength, format, enum: values, const: value, anyOf }: Item, bytesMax: number): boolean {
  if (typeof maxLength === 'number') return maxLength * bytesPerCodePointMax <= bytesMax;
  if (Array.isArray(anyOf)) {
    return anyOf.every((part: unknown) => isItem(part) && (part.type === 'null' || isShort(part, bytesMax)));
  }
  return values !== undefined || value !== undefined || shortFormats.has(format);
}

function isItem(value: unknown): value is Item {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
