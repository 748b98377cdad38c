/**
 * POST /portal-sessions (§5.10): exchanges a link to the portal for its session, once. The link is its own credential. Whatever is wrong
 * with it, the answer is the same 401.
 *
 * The session is a bearer token that the page keeps, and no cookie: a page within a frame of another site gets none, and a request that
 * another site sends from the browser has no rights.
 */
import { Type } from 'typebox';
import { actionResource, type Done } from '../../kernel/action.ts';
import { named, type Tag } from '../../kernel/documentation.ts';
import type { Ask, Resource } from '../../kernel/resource.ts';
import { searchText } from '../../model/collection.ts';
import { tenantPrincipalId } from '../../model/principal.ts';
import type { Services } from '../../store/capabilities.ts';
import { keptRow } from '../../store/kept-row.ts';
import type { Store } from '../../store/store.ts';
import type { AccountRouteOptions } from '../account-schemas.ts';
import type { Audit } from '../audit-fact.ts';
import {
  makePortalToken,
  type PortalLink,
  portalLinksCollection,
  portalSecretChange,
  portalSecretsTable,
} from './portal-rows.ts';
import { type PortalVerifierOptions, type ValidToken, validToken } from './portal-verifier.ts';

export type PortalSessionOptions = AccountRouteOptions &
  PortalVerifierOptions &
  Pick<Services, 'random'> & {
    readonly store: Pick<Store, 'read' | 'commit'>;
    readonly audit: Pick<Audit, 'entry'>;
  };

const tokenCharactersMax = 100;
const schema = Type.Object({
  link: Type.String({
    minLength: 1,
    maxLength: tokenCharactersMax,
    description: 'The token of the link: the fragment of its URL, without `#`.',
  }),
});
const tag: Tag = { name: 'portal', description: 'The portal of a tenant.' };
const expiresAt = '2026-08-01T10:30:00.000Z';

export function portalSessionResource(options: PortalSessionOptions): Resource {
  return actionResource(
    {
      path: `${options.base}/portal-sessions`,
      tag,
      noun: 'the opening of a session of the portal',
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
      handler: (ask, { link }) => open(options, ask, link),
    },
    options.limits,
  );
}

const refused = { refused: { code: 'invalid_token' } } as const;

async function open(options: PortalSessionOptions, ask: Ask, text: string): Promise<Done> {
  const { store, random, clock } = options;
  const valid = await validToken(options, text, 'link');
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
      entryOf(options, ask, valid),
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

function entryOf({ audit, addressOf }: PortalSessionOptions, { request }: Ask, { link }: ValidToken) {
  return audit.entry({
    type: 'portal_session.opened',
    ...{ actor: tenantPrincipalId(link.tenant), kind: 'portal', subject: link.id },
    ...(request.id === '' ? {} : { requestId: request.id }),
    address: addressOf(request),
  });
}
