/**
 * `/portal-links` (§5.10): administrators create, list and revoke links to the portal of a tenant. The URL has the token in its fragment,
 * which no browser sends to a server: it is in no log, no referrer and no cache. Under an Idempotency-Key the answer is kept encrypted.
 */
import { Type } from 'typebox';
import { actionOperation, type Done, madeBy } from '../../kernel/action.ts';
import { type CollectionOperation, representationOf } from '../../kernel/documentation.ts';
import type { Ask, Operation } from '../../kernel/resource.ts';
import { nextRow } from '../../resources/collection/row.ts';
import type { Served } from '../../resources/collection/served.ts';
import { type ServedCollection, type Serving, serveCollection } from '../../resources/collection/serving.ts';
import type { Services } from '../../store/capabilities.ts';
import { administratorsOnly } from '../administrators-only.ts';
import type { Audit } from '../audit-fact.ts';
import { type AddressOf, factOfAsk } from '../fact-of-ask.ts';
import { makePortalToken, portalLinksCollection, portalSecretChange, tenantSchema } from './portal-rows.ts';

export type PortalLinkOptions = Pick<Services, 'random'> & {
  readonly audit: Pick<Audit, 'entry'>;
  readonly addressOf: AddressOf;
  /** The origin that clients see. */
  readonly origin: () => string;
  readonly portalLinkSeconds: number;
  readonly portalLinkSecondsMax: number;
};

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'create', 'query', 'read', 'remove']);

/** Where the page is; src/app-assets.ts serves it. */
export const portalPath = '/portal';

export function portalLinkResources(options: PortalLinkOptions, serving: Serving): ServedCollection {
  const { audit, addressOf } = options;
  return serveCollection(serving, portalLinksCollection, {
    announced: false,
    listPermission: administratorsOnly,
    operations,
    create: (served) => createLinkOperation(options, served, serving),
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
      idPrefix: 'plk_',
    },
  });
}

type Wanted = { readonly tenant: string; readonly expiresIn?: number };

function createLinkOperation(options: PortalLinkOptions, served: Served, serving: Serving): Operation {
  const { portalLinkSeconds, portalLinkSecondsMax } = options;
  const schema = Type.Object({
    tenant: tenantSchema,
    expiresIn: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: portalLinkSecondsMax,
        description: `Seconds until the link ends, and the session that it opens. Default: ${Math.min(portalLinkSeconds, portalLinkSecondsMax)}.`,
      }),
    ),
  });
  const { contentLimits, validationErrorsMax } = serving;
  return actionOperation(
    {
      id: 'createPortalLink',
      summary: "Create a link to a tenant's portal",
      description:
        'Only this response shows the link. It opens one session, which reaches only the webhooks of the tenant, and ends at `expiresAt`. A repeated request with the same Idempotency-Key and the same credential shows the link again.',
      input: { name: 'PortalLinkCreation', schema, example: { tenant: 'acme', expiresIn: 3600 } },
      output: madeLink,
      answers: 'created',
      codes: [],
      idempotent: 'sealed',
      permission: administratorsOnly,
      handler: (ask, input) => create(options, served, ask, input as Wanted),
    },
    { ...contentLimits, validationErrorsMax },
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
  options: PortalLinkOptions,
  served: Served,
  ask: Ask,
  { tenant, expiresIn }: Wanted,
): Promise<Done> {
  const { audit, addressOf, random, origin, portalLinkSeconds, portalLinkSecondsMax } = options;
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
  const url = `${origin()}${portalPath}#${token}`;
  const done = { content: { ...JSON.parse(row.doc), url }, created: `${served.path}/${id}` };
  const companions = ask.companions.map((companion) => companion(madeBy(done)));
  const commit = await served.store.commit({ changes: [...changes, ...companions], events: [] });
  if (commit.outcome === 'committed') return done;
  // A superseded companion: another process took this request over, and answers it.
  if (commit.change >= changes.length) return { refused: { code: 'idempotency_key_in_use' } };
  throw new Error(`the new link to the portal could not be stored: ${commit.outcome}`);
}
