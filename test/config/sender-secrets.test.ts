/** Secrets of senders in the environment (§5.6): what is taken, and sentences that never repeat one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspectSenders } from '../../src/config/inspect-senders.ts';
import { ConfigurationError } from '../../src/config/inspection.ts';
import type { Environment } from '../../src/config/load-settings.ts';
import { readSenderSecrets } from '../../src/config/sender-secrets.ts';

const senders = inspectSenders(
  {
    billing: { preset: 'timestamped' },
    partner: { preset: 'standard' },
    lab: { preset: 'gitlab', forward: { url: 'http://10.0.0.7' } },
    old: { preset: 'plain', secretVariable: 'LEGACY', forward: { url: 'http://10.0.0.7', scheme: 'plain' } },
  },
  [],
);
const good = 'whsec_c2VjcmV0IG9mIHRoZSBzZW5kZXIgYmlsbGluZw==';
const other = 'whsec_YW5vdGhlciBzZWNyZXQgb2YgdGhlIHNlbmRlcg==';

type Outcome = {
  readonly given: Readonly<Record<string, readonly string[]>>;
  readonly warnings: readonly string[];
  readonly mistakes: readonly string[];
};

function read(environment: Environment): Outcome {
  const warnings: string[] = [];
  try {
    const given = readSenderSecrets(environment, senders, (sentence) => void warnings.push(sentence));
    return { given: Object.fromEntries(given), warnings, mistakes: [] };
  } catch (error) {
    if (error instanceof ConfigurationError) return { given: {}, warnings, mistakes: error.mistakes };
    throw error;
  }
}

test('takes what is set of each sender, and several with commas between', () => {
  const environment = {
    BILLING_WEBHOOK_SECRET: ` ${good} ,${other},${good}`,
    PARTNER_WEBHOOK_SECRET: '',
    LAB_WEBHOOK_SECRET: 'a token with spaces in it',
    LAB_FORWARD_SECRET: good,
    LEGACY: other,
    PATH: '/bin',
  };
  assert.deepEqual(read(environment), {
    given: {
      BILLING_WEBHOOK_SECRET: [good, other],
      LAB_WEBHOOK_SECRET: ['a token with spaces in it'],
      LAB_FORWARD_SECRET: [good],
      LEGACY: [other],
    },
    warnings: [],
    mistakes: [],
  });
});

test('tells every mistake at once, and none of the secrets', () => {
  const spilt = 'kept-to-itself-0123456789';
  const eleven = Array.from({ length: 11 }, (_, at) => `${spilt}-${at}`).join();
  const { mistakes } = read({
    BILLING_WEBHOOK_SECRET: `${spilt},,${spilt}${'x'.repeat(1024)}`,
    PARTNER_WEBHOOK_SECRET: spilt,
    LAB_WEBHOOK_SECRET: `${spilt}\u00e9`,
    LAB_FORWARD_SECRET: spilt,
    LEGACY: eleven,
  });
  assert.deepEqual(mistakes, [
    'BILLING_WEBHOOK_SECRET, secret 2 of 3, is empty',
    'BILLING_WEBHOOK_SECRET, secret 3 of 3, has more than 1024 characters',
    'PARTNER_WEBHOOK_SECRET must be "whsec_" and base64 with its padding',
    'LAB_WEBHOOK_SECRET has a character that the field x-gitlab-token cannot hold',
    'LAB_FORWARD_SECRET must be "whsec_" and base64 with its padding',
    'LEGACY holds more than 10 secrets',
  ]);
});

test('warns of a secret that could be guessed, whatever it begins with', () => {
  const { warnings, given } = read({
    BILLING_WEBHOOK_SECRET: 'whsec_fifteen-letters',
    LEGACY: `sixteen--letters,short`,
  });
  assert.deepEqual(warnings, [
    'BILLING_WEBHOOK_SECRET has fewer than 16 characters and could be guessed',
    'LEGACY, secret 2 of 2, has fewer than 16 characters and could be guessed',
  ]);
  assert.equal(given.LEGACY?.length, 2);
});

test('warns of a variable that is nearly one of a sender whose own is not set', () => {
  const { warnings } = read({ BILING_WEBHOOK_SECRET: good, GITHUB_WEBHOOK_SECRET: good });
  assert.deepEqual(warnings, [
    'BILING_WEBHOOK_SECRET belongs to no sender and was ignored; did you mean BILLING_WEBHOOK_SECRET?',
  ]);
  assert.deepEqual(read({ BILING_WEBHOOK_SECRET: good, BILLING_WEBHOOK_SECRET: other }).warnings, []);
});
