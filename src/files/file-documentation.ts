/** The description of the resources of files in the OpenAPI document, and the schema of a file. */
import {
  type Content,
  type Item,
  json,
  named,
  type OperationDocumentation,
  pascalCase,
  type Tag,
} from '../kernel/documentation.ts';
import type { FileField } from '../model/file.ts';
import { fileSchema } from '../model/file.ts';
import type { Served } from '../resources/collection/served-collection.ts';

/** A field of a served collection. */
export type FilePart = { readonly served: Served; readonly field: FileField };

const example = {
  id: 'file_01k1jx7v2mh5s8b4c9d0e6f3ga',
  name: 'photo.jpg',
  type: 'image/jpeg',
  bytes: 48_211,
  digest: 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:',
  url: '/api/v1/tickets/01k1jx7v2mh5s8b4c9d0e6f3ga/photo',
};

const file: Content = json(named('File', fileSchema), example);
export const binary: Item = { schema: { type: 'string', format: 'binary' } };

export const fileTag: Tag = { name: 'files', description: 'Files of documents, by links and uploads.' };

/** `TicketsAttachment` */
function nameOf({ served: { collection }, field }: FilePart): string {
  return pascalCase(collection.name) + pascalCase(field.name);
}

export function downloadDocumentation(part: FilePart): OperationDocumentation {
  const { served, field } = part;
  const { collection } = served;
  return {
    id: `download${nameOf(part)}`,
    summary: `Get a file of ${collection.name}`,
    description:
      'Ranges and conditions work as for any file; `Repr-Digest` comes if `Want-Repr-Digest` asks for it.',
    parameters: [
      {
        name: 'download',
        in: 'query',
        description: '`1`: browsers save the file instead of showing it.',
        schema: { enum: ['0', '1'] },
      },
    ],
    gives: {
      representation: Object.fromEntries((field.rule.types ?? ['*/*']).map((type) => [type, binary])),
    },
    representationFields: ['Content-Disposition', 'Content-Security-Policy'],
    member: { collection, action: 'read' },
    mayBeMissing: true,
    codes: ['query_parameter_invalid'],
  };
}

export function previewDocumentation(part: FilePart): OperationDocumentation {
  const { collection } = part.served;
  return {
    id: `preview${nameOf(part)}`,
    summary: `Get a preview of a file of ${collection.name}`,
    description: 'Made when it is first asked for. 404 if none can be made of the file.',
    gives: { representation: { 'image/*': binary } },
    representationFields: ['Content-Disposition', 'Content-Security-Policy'],
    member: { collection, action: 'read' },
    mayBeMissing: true,
    codes: ['not_found'],
  };
}

export function uploadDocumentation(part: FilePart): OperationDocumentation {
  const { served, field } = part;
  const { collection } = served;
  const isList = field.filesMax !== undefined;
  return {
    id: `upload${nameOf(part)}`,
    summary: isList ? `Add a file to a document of ${collection.name}` : `Set a file of ${collection.name}`,
    description: `At most ${field.rule.bytesMax} octets. \`Content-Disposition\` names the file; \`Repr-Digest\` or \`Content-Digest\` is checked.`,
    takes: Object.fromEntries((field.rule.types ?? ['*/*']).map((type) => [type, binary])),
    gives: isList ? { created: file } : { created: file, changed: file },
    creates: isList ? 'always' : 'sometimes',
    member: { collection, action: 'update' },
    madeFields: ['ETag'],
    codes: [
      ...(['digest_mismatch', 'file_space_missing', 'media_type_unsupported', 'quota_exceeded'] as const),
      ...(['validation_failed', 'field_unpatchable'] as const),
      ...(collection.hooks?.beforeWrite === undefined ? [] : (['refused_by_application'] as const)),
    ],
  };
}

export function beginningDocumentation(part: FilePart): OperationDocumentation {
  const { takes: _takes, gives: _gives, ...upload } = uploadDocumentation(part);
  return {
    ...upload,
    id: `begin${nameOf(part)}`,
    summary: `Begin a resumable upload of a file of ${part.served.collection.name}`,
    description:
      'By tus 1.0 or the resumable upload draft of the IETF. `Location` takes the octets; the last ones set the file.',
    takes: { '*/*': binary },
    gives: { created: file },
    creates: 'always',
  };
}

export function removalDocumentation(part: FilePart): OperationDocumentation {
  const { collection } = part.served;
  return {
    id: `remove${nameOf(part)}`,
    summary: `Remove a file of ${collection.name}`,
    member: { collection, action: 'update' },
    mayBeMissing: true,
    gives: { deleted_representation: file },
    codes: [
      ...(['validation_failed', 'field_unpatchable'] as const),
      ...(collection.hooks?.beforeWrite === undefined ? [] : (['refused_by_application'] as const)),
    ],
  };
}
