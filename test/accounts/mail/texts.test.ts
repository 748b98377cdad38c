import assert from 'node:assert/strict';
import test from 'node:test';
import { createMailTexts, formatDuration, mailCodePurposes } from '../../../src/accounts/mail-texts.ts';
import type { MailTemplate } from '../../../src/config/mail-templates.ts';

const options = {
  title: 'Shop',
  templates: new Map<string, MailTemplate>(),
  ...{ mailVerificationUrl: undefined, mailResetUrl: undefined, mailInvitationUrl: undefined },
  ...{ mailLoginUrl: undefined, mailUndoUrl: undefined },
  ...{ verificationCodeSeconds: 86_400, resetCodeSeconds: 3600, invitationCodeSeconds: 604_800 },
  ...{ mailLoginSeconds: 600, emailUndoSeconds: 86_400 },
};
const code = 'A-very_long_code';

test('writes the code alone where the application has no page for it', () => {
  for (const purpose of mailCodePurposes) {
    const mail = createMailTexts(options, options)(purpose, 'ada@shop.example', code);
    assert.deepEqual(mail.to, ['ada@shop.example']);
    assert.match(mail.subject, /^Shop: /);
    assert.ok(mail.text?.includes(`\n\n${code}\n\n`));
    assert.ok(!mail.text?.includes('http'));
  }
});

test('writes the page of the application with the code in its place', () => {
  const texts = createMailTexts(options, {
    ...options,
    mailVerificationUrl: 'https://shop.example/verify#{code}',
    mailResetUrl: 'https://shop.example/reset?c={code}',
  });
  assert.ok(texts('verification', 'a@b', code).text?.includes(`\n\nhttps://shop.example/verify#${code}\n\n`));
  assert.ok(texts('reset', 'a@b', code).text?.includes(`\n\nhttps://shop.example/reset?c=${code}\n\n`));
});

test('takes a code for text, not for a pattern of a replacement', () => {
  const texts = createMailTexts(options, { ...options, mailResetUrl: 'https://shop.example/{code}' });
  assert.ok(texts('reset', 'a@b', '$&').text?.includes('https://shop.example/$&\n'));
});

test('says how long each code is good', () => {
  const texts = createMailTexts(options, options);
  assert.match(texts('verification', 'a@b', code).text ?? '', /within 1 day\./);
  assert.match(texts('reset', 'a@b', code).text ?? '', /within 1 hour\./);
});

test('says a time in the greatest unit without a rest', () => {
  for (const [seconds, said] of [
    [1, '1 second'],
    [90, '90 seconds'],
    [60, '1 minute'],
    [5400, '90 minutes'],
    [7200, '2 hours'],
    [172_800, '2 days'],
  ] as const) {
    assert.equal(formatDuration(seconds), said);
  }
});

test('has a name for an application without a title', () => {
  assert.match(
    createMailTexts({ ...options, title: '' }, options)('reset', 'a@b', code).subject,
    /^Comity: /,
  );
});
