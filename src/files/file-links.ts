/**
 * Links to files that need no credential: POST `{file}/link` makes one, for a caller who may read the document, and GET `{base}/files/{token}`
 * follows it until its end. The token names the document, the field and the file, signed with a key of the store; nothing is kept. A link
 * ends as well when the document is deleted or has another file.
 */
import { timingSafeEqual } from 'node:crypto';
import { Type } from 'typebox';
import { actionResource } from '../kernel/action.ts';
import { named, pascalCase, pathParameter } from '../kernel/documentation.ts';
import type { Operation, Resource, Standing } from '../kernel/resource.ts';
import type { FileValue } from '../model/file.ts';
import { onMember } from '../resources/collection/member.ts';
import type { Served } from '../resources/collection/served-collection.ts';
import { whenKnown } from '../store/store.ts';
import { fileAt } from './document-files.ts';
import { binary, type FilePart, fileTag } from './file-documentation.ts';
import {
  type Download,
  existingFile,
  fileRepresentation,
  fileValidators,
  readDownload,
} from './file-routes.ts';
import type { Place } from './place.ts';

type Linking = {
  /** Signs a text with a key of the store. */
  readonly mac: (text: string) => string;
  readonly place: Place;
  readonly base: string;
};

/** POST `{member}/{field}/link`, in a list `{member}/{field}/{fileId}/link`. */
export function linkResource({ mac, base }: Linking, part: FilePart): Resource {
  const { served, field } = part;
  const { settings } = served.serving;
  const isList = field.filesMax !== undefined;
  const schema = Type.Object({
    expiresIn: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: settings.fileLinkSecondsMax,
        description: `Seconds until the link ends. Default: ${settings.fileLinkSeconds}.`,
      }),
    ),
  });
  const place = onMember(
    served,
    `${field.name}${isList ? '/{fileId}' : ''}/link`,
    'read',
    'Id of the document.',
  );
  return actionResource(
    {
      ...place,
      parameters: [...place.parameters, ...(isList ? [pathParameter('fileId', 'Id of the file.')] : [])],
      ...{ id: `link${nameOf(part)}`, name: `${nameOf(part)}Link` },
      summary: `Make a link to a file of ${served.collection.name}`,
      description: 'Whoever has the link may get the file until `expiresAt`, without a credential.',
      input: { name: 'FileLinkRequest', schema, example: { expiresIn: 3600 }, optional: true },
      output: { schema: linkSchema, example: linkExample },
      answers: 'created',
      codes: [],
      standing: (ask) => existingFile(part, ask, 'read'),
      handler: (ask, { expiresIn = settings.fileLinkSeconds }, { id, file }) => {
        const expiresAt = ask.now + expiresIn * 1000;
        const token = formatToken(
          {
            collection: served.collection.name,
            document: id,
            field: field.name,
            file: file?.id ?? '',
            expiresAt,
          },
          mac,
        );
        const url = `${base}/files/${token}`;
        return { content: { url, expiresAt: new Date(expiresAt).toISOString() }, created: url };
      },
    },
    settings,
  );
}

function nameOf({ served, field }: FilePart): string {
  return pascalCase(served.collection.name) + pascalCase(field.name);
}

const linkSchema = named('FileLink', {
  description: 'A link to a file, which needs no credential.',
  type: 'object',
  properties: {
    url: { type: 'string', format: 'uri-reference' },
    expiresAt: { type: 'string', format: 'date-time' },
  },
  required: ['url', 'expiresAt'],
});

const linkExample = { url: '/api/v1/files/eyJjIjoidGlja2V0cyJ9.c2ln', expiresAt: '2026-08-01T10:30:00.000Z' };

type Linked = {
  readonly collection: string;
  readonly document: string;
  readonly field: string;
  readonly file: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
};

const tokenPurpose = 'file-link';

function formatToken({ collection, document, field, file, expiresAt }: Linked, mac: Linking['mac']): string {
  const named = Buffer.from(JSON.stringify([collection, document, field, file, expiresAt])).toString(
    'base64url',
  );
  return `${named}.${mac(`${tokenPurpose} ${named}`)}`;
}

/** What the token names; undefined if this program did not sign it. */
function readToken(token: string, mac: Linking['mac']): Linked | undefined {
  const [named = '', signature = ''] = token.split('.', 2);
  const expected = Buffer.from(mac(`${tokenPurpose} ${named}`));
  const given = Buffer.from(signature);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  const [collection, document, field, file, expiresAt] = JSON.parse(
    Buffer.from(named, 'base64url').toString(),
  ) as [string, string, string, string, number];
  return { collection, document, field, file, expiresAt };
}

type LinkStanding = Standing & { readonly file: FileValue | undefined };

/** GET and HEAD of `{base}/files/{token}`. @param declared collections with files */
export function linkedResource({ mac, place, base }: Linking, declared: readonly Served[]): Resource {
  const byName = new Map(declared.map((served) => [served.collection.name, served]));
  const cacheControl = 'private, no-cache';
  const missing: LinkStanding = { exists: false, visible: true, permitted: true, file: undefined };
  const operation: Operation<LinkStanding, never, Download> = {
    documentation: {
      id: 'downloadLinkedFile',
      summary: 'Get a file by a link',
      description: '404 after the end of the link, and when the document no longer has the file.',
      mayBeMissing: true,
      gives: { representation: { '*/*': binary } },
      representationFields: ['Content-Disposition', 'Content-Security-Policy'],
      codes: ['query_parameter_invalid'],
    },
    permission: () => 'granted',
    offers: ['*/*'],
    ranges: true,
    standing: ({ captures, now }) => {
      const linked = readToken(captures[0] ?? '', mac);
      const served = linked === undefined ? undefined : byName.get(linked.collection);
      const field = linked === undefined ? undefined : served?.collection.files?.get(linked.field);
      if (linked === undefined || served === undefined || field === undefined || linked.expiresAt <= now)
        return missing;
      return whenKnown(served.store.read(linked.collection, linked.document), (row) => {
        const file =
          row === undefined || row.deletedAt !== null ? undefined : fileAt(row.doc, field, linked.file);
        return file === undefined ? missing : { exists: true, visible: true, permitted: true, file };
      });
    },
    propose: ({ query }) => readDownload(query),
    validators: (_ask, standing) => ({ ...fileValidators(standing), cacheControl }),
    represent: (_ask, { file }, proposal) => {
      if (file === undefined) throw new Error('a link leads to a file');
      const shown = fileRepresentation(place, file, cacheControl, proposal?.saves === true);
      return { ...shown, fields: [...(shown.fields ?? []), 'Referrer-Policy', 'no-referrer'] };
    },
  };
  return {
    pattern: `${base}/files/{token}`,
    documentation: {
      name: 'LinkedFile',
      tag: fileTag,
      parameters: [pathParameter('token', 'From the `url` of a link.')],
    },
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers: ['*/*'],
    ignoresCredentials: true,
  };
}
