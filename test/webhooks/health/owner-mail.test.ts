import assert from 'node:assert/strict';
import test from 'node:test';
import { createEndpointMailTexts } from '../../../src/accounts/mail-texts.ts';
import type { Letter } from '../../../src/mail/keep-mail.ts';
import type { Endpoint } from '../../../src/model/endpoint.ts';
import { createOwnerNotices, type EndpointNotice } from '../../../src/webhooks/sending/endpoint-health.ts';

const since = Date.parse('2026-03-01T12:00:00.000Z');
const endpoint: Endpoint = {
  id: 'ep_1',
  url: 'https://receiver.example:8443/hooks/SECRET?token=SECRET',
  events: ['*'],
  scheme: 'standard',
  status: 'enabled',
  description: 'SECRET',
  headers: { authorization: 'SECRET' },
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
};
const failing: EndpointNotice = { kind: 'failing', endpoint, owner: 'usr_ada', since, reason: 'failing' };

async function sentFor(
  notice: EndpointNotice,
  operatorMail: string | undefined = 'ops@shop.example',
): Promise<readonly Letter[]> {
  const sent: Letter[] = [];
  const ownerMail = {
    mail: { send: async (mail: Letter) => void sent.push(mail) },
    findAddress: async (owner: string) => (owner === 'usr_ada' ? 'ada@shop.example' : undefined),
    texts: createEndpointMailTexts(
      { templates: new Map(), title: 'Shop' },
      { endpointDisableSeconds: 432_000 },
    ),
  };
  const notify = createOwnerNotices(ownerMail, operatorMail);
  await notify?.(notice);
  return sent;
}

test('warns the owner of a failing endpoint, and says when it will be disabled', async () => {
  const [mail, ...others] = await sentFor(failing);
  assert.equal(others.length, 0);
  assert.deepEqual(mail?.to, ['ada@shop.example']);
  assert.equal(mail?.subject, 'Shop: a webhook endpoint is failing');
  assert.match(
    mail?.text ?? '',
    /ep_1 at https:\/\/receiver\.example:8443 has accepted no delivery since 2026-03-01T12/,
  );
  assert.match(mail?.text ?? '', /for 5 days in total/);
});

test('says why an endpoint was disabled', async () => {
  for (const [reason, said] of [
    ['gone', /answered 410 \(Gone\) at 2026-03-01T12:00:00\.000Z/],
    ['failing', /has accepted no delivery since 2026-03-01T12:00:00\.000Z/],
  ] as const) {
    const [mail] = await sentFor({ ...failing, kind: 'disabled', reason });
    assert.equal(mail?.subject, 'Shop: a webhook endpoint was disabled');
    assert.match(mail?.text ?? '', said);
    assert.match(mail?.text ?? '', /It was disabled\./);
  }
});

test('puts nothing into a mail that may be a secret', async () => {
  for (const kind of ['failing', 'disabled'] as const) {
    const [mail] = await sentFor({ ...failing, kind });
    assert.ok(mail !== undefined && !JSON.stringify(mail).includes('SECRET'));
  }
});

test('tells the operator where the owner is no account, and nobody where there is no operator', async () => {
  for (const owner of ['administrator', null]) {
    assert.equal((await sentFor({ ...failing, owner }))[0]?.to[0], 'ops@shop.example');
  }
  const sent: Letter[] = [];
  const ownerMail = {
    mail: { send: async (mail: Letter) => void sent.push(mail) },
    findAddress: async () => undefined,
    texts: createEndpointMailTexts({ templates: new Map(), title: '' }, { endpointDisableSeconds: 60 }),
  };
  const notify = createOwnerNotices(ownerMail, undefined);
  await notify?.(failing);
  assert.deepEqual(sent, []);
});

test('is not there without a mail server', () => {
  const texts = createEndpointMailTexts({ templates: new Map(), title: '' }, { endpointDisableSeconds: 60 });
  const ownerMail = { mail: undefined, findAddress: async () => 'a@b', texts };
  assert.equal(createOwnerNotices(ownerMail, undefined), undefined);
});
