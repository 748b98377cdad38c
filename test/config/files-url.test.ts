/** Where files are kept, as COMITY_FILES_URL says it: every sentence that refuses a URL, and what the variables of AWS add. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFilesUrl, refuseFilesUrl } from '../../src/config/files-url.ts';
import { type Environment, loadSettings } from '../../src/config/load-settings.ts';
import { mistakesFrom } from '../harness/mistakes.ts';

function mistakesOf(environment: Environment): readonly string[] {
  return mistakesFrom(() => loadSettings(environment));
}

test('reads folders and buckets', () => {
  const bucket = { kind: 'bucket', bucket: 'files', prefix: '' };
  const local = { ...bucket, origin: 'http://127.0.0.1:9000', path: '/files', region: 'us-east-1' };
  const read: readonly (readonly [string, unknown])[] = [
    ['file:/srv/files', { kind: 'folder', folder: '/srv/files' }],
    ['file:///srv/my%20files/', { kind: 'folder', folder: '/srv/my files/' }],
    ['FILE:///srv', { kind: 'folder', folder: '/srv' }],
    [
      's3://files?region=eu-central-1',
      { ...bucket, origin: 'https://files.s3.eu-central-1.amazonaws.com', path: '', region: 'eu-central-1' },
    ],
    [
      's3://my.files?region=eu-central-1',
      {
        ...bucket,
        bucket: 'my.files',
        origin: 'https://s3.eu-central-1.amazonaws.com',
        path: '/my.files',
        region: 'eu-central-1',
      },
    ],
    ['s3://files?endpoint=http://127.0.0.1:9000', local],
    ['s3://files/?endpoint=http://127.0.0.1:9000/', local],
    ['s3://files/a/b?endpoint=http%3A%2F%2F127.0.0.1%3A9000', { ...local, prefix: 'a/b/' }],
    ['s3://files/a/b/?endpoint=http://127.0.0.1:9000', { ...local, prefix: 'a/b/' }],
    [
      's3://files?endpoint=https://s3.example&style=virtual&region=RegionOne',
      { ...bucket, origin: 'https://files.s3.example', path: '', region: 'RegionOne' },
    ],
  ];
  for (const [text, location] of read) assert.deepEqual(readFilesUrl(text), location, text);
});

test('refuses other URLs, and says what is expected', () => {
  const any = /^must be a URL such as file:\/\/\/srv\/files or s3:\/\/bucket/;
  const folder = /^must name a folder by an absolute path/;
  const named = /^must name a bucket, as in s3:\/\/bucket/;
  const prefix = /^may have a prefix of letters/;
  const server = /^must have an endpoint such as https:\/\/s3\.example, without a path/;
  const refused: readonly (readonly [string, RegExp])[] = [
    ['/srv/files', any],
    ['files', any],
    ['https://files.s3.example', any],
    ['file:files', folder],
    ['file:./files', folder],
    ['file://server/files', folder],
    ['file:///srv/files?mode=1', folder],
    ['file:///srv%2Ffiles', /^must name a folder without an encoded slash$/],
    ['s3://', named],
    ['s3:///files', named],
    ['s3://My_Files', named],
    ['s3://ab', named],
    ['s3://files:9000', named],
    ['s3://key:secret@files', /^must hold no credential: set COMITY_FILES_S3_ACCESS_KEY/],
    ['s3://files#top', /^must have no fragment$/],
    ['s3://files?reigon=x', /^has the parameter "reigon", and may have endpoint, region and style$/],
    ['s3://files?region=a&region=b', /^has the parameter "region" twice$/],
    ['s3://files/a//b', prefix],
    ['s3://files/a%20b', prefix],
    ['s3://files/.a', prefix],
    ['s3://files?region=eu%20central', /^must have a region of letters/],
    ['s3://files?endpoint=s3.example', server],
    ['s3://files?endpoint=ftp://s3.example', server],
    ['s3://files?endpoint=https://s3.example/path', server],
    ['s3://files?endpoint=https://u:p@s3.example', server],
    ['s3://files?endpoint=https://s3.example&style=dns', /^must have the style path or virtual$/],
    ['s3://files?endpoint=http://127.0.0.1:9000&style=virtual', /^must have the style path where/],
    ['s3://files?endpoint=http://[::1]:9000&style=virtual', /^must have the style path where/],
  ];
  for (const [text, sentence] of refused) assert.match(refuseFilesUrl(text) ?? 'taken', sentence, text);
});

const keys = { AWS_ACCESS_KEY_ID: 'A', AWS_SECRET_ACCESS_KEY: 'B' };

test('takes the credential and the region of a bucket from the variables of AWS', () => {
  const { settings, sources } = loadSettings({
    ...keys,
    COMITY_FILES_URL: 's3://files',
    AWS_SESSION_TOKEN: 'C',
    AWS_REGION: 'eu-north-1',
  });
  assert.equal(settings.filesUrl, 's3://files?region=eu-north-1');
  assert.equal(settings.filesS3AccessKey, 'A');
  assert.equal(settings.filesS3SecretKey, 'B');
  assert.equal(settings.filesS3SessionToken, 'C');
  assert.equal(sources.get('filesS3AccessKey'), 'environment');
  const regional = loadSettings({
    ...keys,
    COMITY_FILES_URL: 's3://files?region=a',
    AWS_DEFAULT_REGION: 'b',
  });
  assert.equal(regional.settings.filesUrl, 's3://files?region=a');
});

test('mixes no credential of two sources, and takes none for a folder', () => {
  const own = { COMITY_FILES_URL: 's3://files?region=a', COMITY_FILES_S3_ACCESS_KEY: 'own' };
  assert.match(
    mistakesOf({ ...keys, ...own }).join(),
    /^COMITY_FILES_URL names a bucket: set COMITY_FILES_S3_/,
  );
  const { settings } = loadSettings({
    ...keys,
    ...own,
    COMITY_FILES_S3_SECRET_KEY: 'secret',
    AWS_SESSION_TOKEN: 'C',
  });
  assert.equal(settings.filesS3AccessKey, 'own');
  assert.equal(settings.filesS3SessionToken, undefined);
  for (const url of [{}, { COMITY_FILES_URL: 'file:///srv/files' }]) {
    assert.equal(loadSettings({ ...keys, AWS_REGION: 'x', ...url }).settings.filesS3AccessKey, undefined);
  }
});

test('refuses a bucket of AWS without a region, and one without a credential', () => {
  assert.match(
    mistakesOf({ ...keys, COMITY_FILES_URL: 's3://files' }).join(),
    /must name the region of a bucket of AWS/,
  );
  assert.match(
    mistakesOf({ COMITY_FILES_URL: 's3://files?region=a' }).join(),
    /or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY$/,
  );
});

test('warns of an endpoint without TLS, unless it is on this machine', () => {
  const warningsOf = (endpoint: string): readonly string[] =>
    loadSettings({ ...keys, COMITY_FILES_URL: `s3://files?endpoint=${endpoint}` }).warnings;
  assert.match(
    warningsOf('http://minio.internal:9000').join(),
    /files cross the network to minio\.internal in plain text/,
  );
  assert.deepEqual(warningsOf('http://127.0.0.1:9000'), []);
  assert.deepEqual(warningsOf('http://localhost:9000'), []);
  assert.deepEqual(warningsOf('https://s3.example'), []);
});
