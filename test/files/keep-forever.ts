/** A process that keeps files in a place until it is killed, and prints the key of each when `keep` has ended. Arguments: FILES_URL DATA BYTES */
import { randomBytes } from 'node:crypto';
import { loadSettings } from '../../src/config/load-settings.ts';
import { openPlace } from '../../src/files/open-place.ts';
import { shortBounds } from './open-bucket.ts';
import { keepNew } from './place-contract.ts';

const [filesUrl = '', data = '', bytes = ''] = process.argv.slice(2);
const key = { COMITY_FILES_S3_ACCESS_KEY: 'AKIDOUBLE', COMITY_FILES_S3_SECRET_KEY: process.env.SECRET };
const { settings } = loadSettings({ COMITY_FILES_URL: filesUrl, COMITY_DATA: data, ...key });
const place = await openPlace(settings, {
  observe: () => undefined,
  clock: Date.now,
  ownListeners: () => [],
  bounds: shortBounds,
});

async function keepAll(): Promise<never> {
  for (;;) {
    const { key: kept } = await keepNew(place, randomBytes(Number(bytes)));
    process.stdout.write(`${kept}\n`);
  }
}

await Promise.all([keepAll(), keepAll(), keepAll()]);
