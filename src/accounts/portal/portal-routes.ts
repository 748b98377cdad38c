/**
 * `/portal-links` and POST /portal-sessions (§5.10). Administrators create, list and revoke links to the portal of a tenant. The URL has the
 * token in its fragment, which no browser sends to a server: it is in no log, no referrer and no cache. Under an Idempotency-Key the
 * response is kept encrypted.
 *
 * The page exchanges the link for its session, once. The link is its own credential. Whatever is wrong with it, the response is the same
 * 401. The session is a bearer token that the page keeps, and no cookie: a page within a frame of another site gets none, and a request
 * that another site sends from the browser has no rights.
 */
import { Type } from 'typebox';
import { publicRoot } from '../../http/syntax/uri.ts';
import { actionOperation, actionResource, type Done, madeBy } from '../../kernel/action.ts';
import { type CollectionOperation, named, representationOf, type Tag } from '../../kernel/documentation.ts';
import type { Ask, Operation, Resource } from '../../kernel/resource.ts';
import { searchText } from '../../model/collection.ts';
import { tenantPrincipalId } from '../../model/principal.ts';
import { nextRow } from '../../resources/collection/row.ts';
import { type ServedCollection, serveCollection } from '../../resources/collection/serve-collection.ts';
import type { Served, Serving } from '../../resources/collection/served-collection.ts';
import { keptRow } from '../../store/store.ts';
import type { AccountParts } from '../account-parts.ts';
import { administratorsOnly } from '../account-schemas.ts';
import { factOfAsk } from '../audit.ts';
import {
  makePortalToken,
  type PortalLink,
  portalLinksCollection,
  portalSecretChange,
  portalSecretsTable,
  tenantSchema,
  type ValidToken,
  validToken,
} from './portal-verifier.ts';

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'create', 'query', 'read', 'remove']);

/** Where the page is; src/app-assets.ts serves it. */
export const portalPath = '/portal';

export function portalLinkResources(parts: AccountParts, serving: Serving): ServedCollection {
  const { audit, addressOf } = parts;
  return serveCollection(serving, portalLinksCollection, {
    announced: false,
    listPermission: administratorsOnly,
    operations,
    create: (served) => createLinkOperation(parts, served),
    accompany: ({ ask, id }) => ({
      changes: [audit.entry(factOfAsk(ask, addressOf, { type: 'portal_link.revoked', subject: id }))],
    }),
    documentation: {
      names: {
        singular: 'PortalLink',
        plural: 'PortalLinks',
        one: 'a link to the portal',
        many: 'links to the portal',
      },
      audience: 'operator',
      idPrefix: 'plk_',
    },
  });
}

type Wanted = { readonly tenant: string; readonly expiresIn?: number };

function createLinkOperation(parts: AccountParts, served: Served): Operation {
  const { portalLinkSeconds, portalLinkSecondsMax } = parts.settings;
  const linkSchema = Type.Object({
    tenant: tenantSchema,
    expiresIn: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: portalLinkSecondsMax,
        description: `Seconds until the link ends, and the session that it opens. Default: ${Math.min(portalLinkSeconds, portalLinkSecondsMax)}.`,
      }),
    ),
  });
  return actionOperation(
    {
      id: 'createPortalLink',
      summary: "Create a link to a tenant's portal",
      description:
        'Only this response shows the link. It opens one session, which reaches only the webhooks of the tenant, and ends at `expiresAt`. A repeated request with the same Idempotency-Key and the same credential shows the link again.',
      input: { name: 'PortalLinkCreation', schema: linkSchema, example: { tenant: 'acme', expiresIn: 3600 } },
      output: madeLink,
      answers: 'created',
      codes: [],
      idempotent: 'sealed',
      permission: administratorsOnly,
      handler: (ask, input) => create(parts, served, ask, input as Wanted),
    },
    parts.settings,
  );
}

const madeAt = '2026-08-01T09:30:00.000Z';
const madeLink = {
  schema: {
    allOf: [
      representationOf(portalLinksCollection),
      {
        type: 'object',
        properties: { url: { type: 'string', description: 'The link. Only this response shows it.' } },
        required: ['url'],
      },
    ],
  },
  example: {
    id: 'plk_01k1jx7v2mh5s8b4c9d0e6f3ga',
    tenant: 'acme',
    expiresAt: '2026-08-01T10:30:00.000Z',
    createdAt: madeAt,
    updatedAt: madeAt,
    url: 'https://api.example/portal#pl_AbCd...',
  },
};

async function create(
  parts: AccountParts,
  served: Served,
  ask: Ask,
  { tenant, expiresIn }: Wanted,
): Promise<Done> {
  const { audit, addressOf, random, origin, settings } = parts;
  const { portalLinkSeconds, portalLinkSecondsMax } = settings;
  const at = served.clock();
  const seconds = expiresIn ?? Math.min(portalLinkSeconds, portalLinkSecondsMax);
  const endsAt = at + seconds * 1000;
  const id = `plk_${served.newId()}`;
  const token = makePortalToken('link', random);
  const { known, principal } = ask;
  const maker = known?.key == null ? {} : { madeBy: known.key };
  const row = nextRow(served, {
    id,
    fields: { tenant, expiresAt: new Date(endsAt).toISOString(), ...maker },
    owner: principal.kind === 'authenticated' ? principal.id : null,
    createdAt: at,
    updatedAt: at,
    deletedAt: null,
  });
  const detail = { tenant, expiresIn: seconds };
  const changes = [
    { table: served.collection.name, id, expect: { absent: true } as const, next: row },
    portalSecretChange(token, { kind: 'link', link: id }, at, endsAt),
    audit.entry(factOfAsk(ask, addressOf, { type: 'portal_link.created', subject: id, detail })),
  ];
  const url = `${origin()}${publicRoot(settings.publicUrl)}${portalPath}#${token}`;
  const done = { content: { ...JSON.parse(row.doc), url }, created: `${served.path}/${id}` };
  const companions = ask.companions.map((companion) => companion(madeBy(done)));
  const commit = await served.store.commit({ changes: [...changes, ...companions], events: [] });
  if (commit.outcome === 'committed') return done;
  // A superseded companion: another process took this request over, and answers it.
  if (commit.change >= changes.length) return { refused: { code: 'idempotency_key_in_use' } };
  throw new Error(`the new link to the portal could not be stored: ${commit.outcome}`);
}

const tokenCharactersMax = 100;
const schema = Type.Object({
  link: Type.String({
    minLength: 1,
    maxLength: tokenCharactersMax,
    description: 'The token of the link: the fragment of its URL, without `#`.',
  }),
});
const tag: Tag = { name: 'portal', description: 'The portal of a tenant.', audience: 'operator' };
const expiresAt = '2026-08-01T10:30:00.000Z';

export function portalSessionResource(parts: AccountParts): Resource {
  return actionResource(
    {
      path: `${parts.base}/portal-sessions`,
      tag,
      ignoresCredentials: true,
      id: 'openPortalSession',
      summary: 'Exchange a link to the portal for a session',
      description:
        'A link works once. The session is a bearer token that reaches only the webhooks of the tenant, until `expiresAt` or until the link is deleted.',
      input: { name: 'PortalSessionOpening', schema, example: { link: 'pl_AbCd...' } },
      output: {
        schema: named('PortalSession', {
          description: 'A session of the portal.',
          type: 'object',
          properties: {
            token: { type: 'string', description: 'The bearer token. Only this response shows it.' },
            tenant: { type: 'string' },
            expiresAt: { type: 'string', format: 'date-time' },
          },
          required: ['token', 'tenant', 'expiresAt'],
        }),
        example: { token: 'ps_AbCd...', tenant: 'acme', expiresAt },
      },
      codes: ['invalid_token'],
      handler: (ask, { link }) => open(parts, ask, link),
    },
    parts.settings,
  );
}

const refused = { refused: { code: 'invalid_token' } } as const;

async function open(parts: AccountParts, ask: Ask, text: string): Promise<Done> {
  const { store, random, clock } = parts;
  const valid = await validToken(parts, text, 'link');
  if (valid === undefined) return refused;
  const { secret, link, endsAt } = valid;
  const at = clock();
  const token = makePortalToken('session', random);
  const commit = await store.commit({
    changes: [
      // Of two concurrent exchanges, in any process, one removes the row.
      { table: portalSecretsTable, id: secret.id, expect: { rev: secret.rev }, next: null },
      portalSecretChange(token, { kind: 'session', link: link.id }, at, endsAt),
      usedChange(valid, at),
      entryOf(parts, ask, valid),
    ],
    events: [],
  });
  if (commit.outcome !== 'committed') return refused;
  return { content: { token, tenant: link.tenant, expiresAt: new Date(endsAt).toISOString() } };
}

function usedChange({ row, link }: ValidToken, at: number) {
  const { id, tenant, expiresAt, madeBy, createdAt } = link;
  const updatedAt = Math.max(at, row.updatedAt);
  const used = {
    ...{ id, tenant, expiresAt, usedAt: new Date(at).toISOString() },
    ...(madeBy === undefined ? {} : { madeBy }),
    ...{ createdAt, updatedAt: new Date(updatedAt).toISOString() },
  } satisfies PortalLink;
  const search = searchText(portalLinksCollection.searchFields, used);
  const next = { ...keptRow(JSON.stringify(used), row.owner, row.createdAt, updatedAt), search };
  return { table: portalLinksCollection.name, id, expect: { rev: row.rev }, next };
}

function entryOf({ audit, addressOf }: AccountParts, { request }: Ask, { link }: ValidToken) {
  return audit.entry({
    type: 'portal_session.opened',
    ...{ actor: tenantPrincipalId(link.tenant), kind: 'portal', subject: link.id },
    ...(request.id === '' ? {} : { requestId: request.id }),
    address: addressOf(request),
  });
}
