/** The schemas of files in those of a collection: what documents show, what a write says about them, and what a form carries. */
import type { Item } from '../kernel/documentation.ts';
import type { Collection } from '../model/collection.ts';
import { fileSchema } from '../model/file.ts';
import type { Components } from './components.ts';

const reference: Item = {
  description:
    'A file of the document by its `id`, or a finished upload. A file may also be repeated as the document shows it.',
  type: 'object',
  properties: { id: { type: 'string' }, upload: { type: 'string' } },
  additionalProperties: true,
};

/** @param as what stands in the place of each file @param properties by name */
export function withFileSchemas(
  as: 'shown' | 'given' | 'part',
  properties: Item,
  { files }: Pick<Collection, 'files'>,
  components: Components,
): Item {
  if (files === undefined) return properties;
  const file =
    as === 'part'
      ? { type: 'string', format: 'binary' }
      : as === 'shown'
        ? components.once('schemas', 'File', () => fileSchema)
        : components.once('schemas', 'FileReference', () => reference);
  return Object.fromEntries(
    Object.entries(properties).map(([name, member]) => {
      const field = files.get(name);
      if (field === undefined) return [name, member];
      return [name, field.filesMax === undefined ? file : { ...(member as Item), items: file }];
    }),
  );
}

/** The media types of the files in a form, by field. */
export function fileEncoding({ files }: Pick<Collection, 'files'>): Item {
  return Object.fromEntries(
    [...(files?.values() ?? [])].flatMap(({ name, rule }) =>
      rule.types === undefined ? [] : [[name, { contentType: rule.types.join(', ') }]],
    ),
  );
}
