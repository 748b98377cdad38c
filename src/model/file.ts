/**
 * Files of documents: the declaration of a field (`File({ bytesMax })`), its value in JSON, and what a write may say about it. The
 * octets are no part of a document; src/files keeps them.
 */
import type { TUnsafe } from 'typebox';
import { isMembers, ownMember } from './json-value.ts';

/** 1,048,576 octets. */
export const MiB = 1024 * 1024;

/** A file as documents show it. */
export type FileValue = {
  /** `file_` and 26 characters. */
  readonly id: string;
  /** The name that the client gave: 1 to 255 octets in UTF-8, without folders. */
  readonly name: string;
  /** Media type, judged by the content; only a text that is not UTF-8 has a parameter, its charset. */
  readonly type: string;
  /** Length in octets. */
  readonly bytes: number;
  /** `sha-256=:...:`, as in Repr-Digest (RFC 9530 §3). */
  readonly digest: string;
  /** Path of the octets on this server. */
  readonly url: string;
  /** Paths of the declared previews, by name. */
  readonly previews?: Readonly<Record<string, string>>;
};

/** What a write says about a file: one that the document has, or a finished upload. */
export type FileReference = { readonly id: string } | { readonly upload: string };

export type PreviewRule = {
  /** Pixels, 1 to 4,096. */
  readonly width: number;
  readonly height: number;
  /** `cover` fills the size and cuts, `contain` fits within and pads, `inside`, the default, fits within. */
  readonly fit?: 'cover' | 'contain' | 'inside';
  /** Default `webp`. */
  readonly format?: 'webp' | 'jpeg' | 'png' | 'avif';
  /** 1 to 100. Default 80. */
  readonly quality?: number;
};

/** With its defaults. */
export type WholePreviewRule = Required<PreviewRule>;

export function wholePreviewRule({
  width,
  height,
  fit = 'inside',
  format = 'webp',
  quality = 80,
}: PreviewRule): WholePreviewRule {
  return { width, height, fit, format, quality };
}

export type FileRule = {
  /** A longer file is refused with 413. */
  readonly bytesMax: number;
  /** `image/png`, or `image/*`. Another type is refused with 415. Default: any. */
  readonly types?: readonly string[];
  /** Smaller pictures of an image, by name. They need the package `sharp`. */
  readonly previews?: Readonly<Record<string, PreviewRule>>;
};

const keyword = 'x-comity-file';

const text = { type: 'string' } as const;

/**
 * A file, as a field of a collection: `Type.Object({ photo: Type.Optional(File({ bytesMax: 20 * MiB, types: ['image/*'] })) })`. Several:
 * `Type.Array(File({ ... }), { maxItems: 8 })`.
 */
export function File(rule: FileRule): TUnsafe<FileValue> {
  // As `Type.Unsafe` makes it; the threads of functions, which need the rule, do not load the schema library.
  return Object.defineProperty(
    {
      type: 'object',
      properties: {
        ...{ id: text, name: text, type: text, bytes: { type: 'integer', minimum: 0 }, digest: text },
        ...{ url: text, previews: { type: 'object', additionalProperties: text }, upload: text },
      },
      additionalProperties: false,
      [keyword]: rule,
    },
    '~unsafe',
    { value: null, writable: true, configurable: true },
  ) as unknown as TUnsafe<FileValue>;
}

/** The rule as it was written; undefined for any other schema. */
export function fileRule(schema: unknown): FileRule | undefined {
  return typeof schema === 'object' && schema !== null && keyword in schema
    ? (schema as { readonly [keyword]: FileRule })[keyword]
    : undefined;
}

/** The schema of a file as documents show it. */
export const fileSchema = {
  description: 'A file of a document. The octets are at `url`.',
  type: 'object',
  properties: {
    ...{ id: text, name: text },
    type: { type: 'string', description: 'Media type, judged by the content.' },
    bytes: { type: 'integer', minimum: 0 },
    digest: { type: 'string', description: 'As in Repr-Digest (RFC 9530).' },
    url: { type: 'string', format: 'uri-reference' },
    previews: { type: 'object', additionalProperties: { type: 'string', format: 'uri-reference' } },
  },
  required: ['id', 'name', 'type', 'bytes', 'digest', 'url'],
} as const;

/** A field that holds a file or a list of files. */
export type FileField = {
  readonly name: string;
  readonly rule: FileRule;
  /** Undefined: one file. */
  readonly filesMax: number | undefined;
};

export type FileFields = ReadonlyMap<string, FileField>;

/** The fields of a collection that hold files; only members at the top level do. */
export function fileFieldsOf(schema: { readonly properties?: unknown }): FileFields {
  const { properties } = schema;
  const fields = new Map<string, FileField>();
  if (typeof properties !== 'object' || properties === null) return fields;
  for (const [name, member] of Object.entries(properties)) {
    const { items, maxItems } = member as { readonly items?: unknown; readonly maxItems?: number };
    const rule = fileRule(member) ?? fileRule(items);
    if (rule !== undefined)
      fields.set(name, { name, rule, filesMax: items === undefined ? undefined : (maxItems ?? 1) });
  }
  return fields;
}

/** The files that a document holds in a field, in order. */
export function filesIn(value: unknown): readonly FileValue[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  return list.filter((each): each is FileValue => isMembers(each) && typeof each.id === 'string');
}

/** A file within a hook or an action, whose octets can be read there. */
export type OpenFile = FileValue & { open(): AsyncIterable<Uint8Array> };

/** The fields as functions of the application see them: their files can be opened. */
export type WithOpenFiles<T> = 0 extends 1 & T
  ? T
  : [FileNames<T>] extends [never]
    ? T
    : { [Name in keyof T]: Name extends FileNames<T> ? Opened<T[Name]> : T[Name] };

type FileNames<T> = {
  [Name in keyof T]-?: NonNullable<T[Name]> extends FileValue | readonly FileValue[] ? Name : never;
}[keyof T];

type Opened<V> = V extends readonly FileValue[] ? OpenFile[] : V extends FileValue ? OpenFile : V;

/** Gives the files of a document the method `open`, which JSON does not have. @returns the document */
export function withOpenFiles<D>(
  document: D,
  files: FileFields | undefined,
  open: (file: FileValue) => AsyncIterable<Uint8Array>,
): D {
  if (files === undefined || !isMembers(document)) return document;
  for (const { name } of files.values())
    for (const file of filesIn(ownMember(document, name)))
      Object.defineProperty(file, 'open', { value: () => open(file) });
  return document;
}

/** A finished upload that a write names in place of a file. */
export function uploadNamed(value: unknown): string | undefined {
  return isMembers(value) && typeof value.upload === 'string' ? value.upload : undefined;
}

/** True if one of the fields names an upload. */
export function namesUpload(
  { files }: { readonly files?: FileFields },
  fields: Readonly<Record<string, unknown>>,
): boolean {
  return [...(files?.keys() ?? [])].some((name) =>
    [fields[name]].flat().some((each) => uploadNamed(each) !== undefined),
  );
}
