/**
 * Every carrier x {missing, malformed, expired, revoked, wrong role, other tenant, right} x {GET, list, QUERY, POST, PATCH, DELETE,
 * bulk-delete, stream} on three collections and both stores: exact status, message, code and the whole of WWW-Authenticate. What is right
 * stands in expectations.ts.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Client, openClient } from '../../../harness/account-client.ts';
import { engineNames } from '../../../harness/engine-names.ts';
import { startIssuer } from '../../../harness/token-issuer.ts';
import type { Stretch, Target } from './cells.ts';
import { askCell, differences, eventOf, makeTarget, readStretch, refusalDifferences } from './cells.ts';
import { type Carried, type Credentials, callerOf, makeCredentials, matrixSettings } from './credentials.ts';
import { type Served, serveOn } from './engines.ts';
import {
  type Caller,
  type CollectionName,
  carriers,
  collections,
  faults,
  operations,
  permittedTo,
  publishableCarriers,
  type Refusal,
  refusalOf,
} from './expectations.ts';

const config = fileURLToPath(new URL('../fixtures/matrix.config.ts', import.meta.url));
const nobody: Carried = { headers: {} };

const issuer = await startIssuer({ after }, { alg: 'ES256' });

before(() => {
  process.env.TEST_ISSUER = issuer.url;
});

after(() => {
  delete process.env.TEST_ISSUER;
});

for (const engine of engineNames) {
  describe(`on ${engine}`, () => {
    let served: Served;
    let client: Client;
    let credentials: Credentials;
    let maker: Carried;
    let standing: Readonly<Record<CollectionName, Target>>;
    let stretch: Stretch;
    let cells = 0;

    before(async () => {
      served = await serveOn(engine, config, matrixSettings);
      client = openClient(served.port);
      credentials = await makeCredentials(client, served, issuer);
      maker = credentials.of('Bearer, access token', 'right');
      const first = await makeTarget(client, 'pages', 'before', maker);
      standing = await makeTargets('standing');
      await makeTarget(client, 'pages', 'the marker', maker);
      stretch = { after: await eventOf(client, first), marker: 'the marker' };
    });

    after(async () => {
      client?.close();
      await served?.stop();
    });

    /** One resource of each collection, made by who is right. */
    async function makeTargets(label: string): Promise<Record<CollectionName, Target>> {
      const made: Partial<Record<CollectionName, Target>> = {};
      for (const collection of collections) {
        made[collection] = await makeTarget(client, collection, `${label} of ${collection}`, maker);
      }
      return made as Record<CollectionName, Target>;
    }

    /** All cells of one caller who comes by one carrier. */
    async function judge(caller: Caller, carried: Carried, label: string): Promise<void> {
      const found: string[] = [];
      const streamed = await readStretch(client, carried, stretch);
      const targets = await makeTargets(label);
      for (const collection of collections) {
        for (const operation of operations) {
          cells += 1;
          const permitted = permittedTo(caller, collection, operation);
          const place = `${collection} ${operation}: `;
          if (operation === 'stream') {
            const seen = streamed.titles.has(standing[collection].title);
            if (streamed.answer.status !== 200) found.push(`${place}${streamed.answer.status}`);
            else if (!('seen' in permitted) || permitted.seen !== seen) found.push(`${place}seen is ${seen}`);
            continue;
          }
          const answer = await askCell(client, operation, collection, targets[collection], carried);
          for (const difference of differences(answer, permitted, targets[collection])) {
            found.push(place + difference);
          }
          if (operation === 'DELETE' && answer.status === 204) {
            targets[collection] = await makeTarget(client, collection, `${label} again`, maker);
          }
        }
      }
      assert.deepEqual(found, []);
    }

    it('lets nobody do what is open to anyone, and challenges for the rest', () =>
      judge('nobody', nobody, 'nobody'));

    for (const carrier of carriers) {
      for (const caller of ['right', 'wrong role', 'other tenant'] as const) {
        it(`treats ${caller} by ${carrier} as the rules say`, () =>
          judge(callerOf(carrier, caller), credentials.of(carrier, caller), `${carrier} ${caller}`));
      }
    }

    for (const carrier of publishableCarriers) {
      it(`lets a publishable key by ${carrier} read and never write`, () =>
        judge('publishable key', credentials.publishable(carrier), `publishable ${carrier}`));
    }

    for (const carrier of carriers) {
      for (const fault of faults) {
        const refusal = refusalOf(carrier, fault);
        if (refusal === undefined) continue;
        const carried = () => credentials.bad(carrier, fault);
        if (refusal === 'nobody') {
          it(`takes ${carrier} that is ${fault} for nobody`, () =>
            judge('nobody', carried(), `${carrier} ${fault}`));
        } else {
          it(`refuses ${carrier} that is ${fault}, whatever it asks: ${refusal.status} ${refusal.error}`, () =>
            refuse(carried(), refusal));
        }
      }
    }

    async function refuse(carried: Carried, refusal: Refusal): Promise<void> {
      const found: string[] = [];
      const streamed = await readStretch(client, carried, stretch);
      for (const collection of collections) {
        for (const operation of operations) {
          cells += 1;
          const answer =
            operation === 'stream'
              ? streamed.answer
              : await askCell(client, operation, collection, standing[collection], carried);
          for (const difference of refusalDifferences(answer, refusal)) {
            found.push(`${collection} ${operation}: ${difference}`);
          }
        }
      }
      assert.deepEqual(found, []);
    }

    it('fails at nothing, and has judged more than a thousand cells', (context) => {
      assert.deepEqual(served.failures, []);
      assert.ok(cells > 1000, `${cells}`);
      context.diagnostic(`${cells} cells on ${engine}, ${client.count} requests`);
    });
  });
}
